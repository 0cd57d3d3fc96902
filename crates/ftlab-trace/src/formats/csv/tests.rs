use crate::settings::Order;
use ftlab_core::flags;

use super::super::testing::{read, read_all};
use super::*;

fn open_with(text: &str, columns: Option<&str>) -> Result<Box<dyn Reader>> {
    let settings = Settings {
        columns: columns.map(str::to_owned),
        ..Settings::default()
    };
    open(Input::from_bytes("t.csv", text.as_bytes().to_vec()).unwrap(), &settings)
}

#[test]
fn four_lines_with_every_column() {
    let (format, batch) = read(
        b"op,\"time_us\",length,offset,flags,volume,stream,pc,pid,label,content,comment\n\
          write,1.5,8192,8192,SM,a,3,0xff,77,\"b, c\",1f+2,hello there\n\
          T,2,1048576,0,,b,,,,,,\n\
          flush,3,,,-,a,0,12,1,d,-,x\n\
          1,4,512,512,,a,0,12,1,d,,x\n",
    );
    assert_eq!(format, "csv");
    assert_eq!(batch.time_ns, [1500, 2000, 3000, 4000]);
    assert_eq!(batch.op, [OpKind::Write, OpKind::Trim, OpKind::Flush, OpKind::Read]);
    assert_eq!(batch.offset, [8192, 0, 0, 512]);
    assert_eq!(batch.length, [8192, 1 << 20, 0, 512]);
    assert_eq!(batch.flags, [flags::SYNC | flags::METADATA, 0, 0, 0]);
    assert_eq!((batch.volume, batch.stream), (vec![0, 1, 0, 0], vec![3, 0, 0, 0]));
    assert_eq!((batch.pc, batch.pid), (vec![255, 0, 12, 12], vec![77, 0, 1, 1]));
    assert_eq!((batch.label, batch.content), (vec![0, 1, 2, 2], vec![0x1f, 2]));
    assert_eq!(batch.content_end, [2, 2, 2, 2]);
}

#[test]
fn fractions_of_a_unit_count_and_those_of_a_byte_are_bad() {
    let (format, batch) = read(b"time_us,op,offset_kib,size_kib\n1,W,0.5,32.5\n2,W,4,4.0\n3,W,1e1,4\n");
    assert_eq!(format, "csv");
    assert_eq!(
        (batch.offset, batch.length),
        (vec![512, 4096, 10_240], vec![33_280, 4096, 4096])
    );
    let mut reader = open_with(
        "time_us,op,offset,size\n1,W,0,512\n2,W,0.5,512\n3,W,0,512.25\n4,W,0,8\n",
        None,
    )
    .unwrap();
    assert_eq!(read_all(reader.as_mut()).unwrap().time_ns, [1000, 4000]);
    assert_eq!(reader.progress().skipped.len(), 2);
}

#[test]
fn opcodes_are_decimal_where_only_that_makes_sense() {
    use OpKind::{Flush, Read, Trim, Write};
    let ops = |codes: &[&str]| {
        let rows: String = codes.iter().map(|code| format!("1,{code},0,512\n")).collect();
        read(format!("time_us,opcode,offset,length\n{rows}").as_bytes()).1.op
    };
    assert_eq!(ops(&["42", "40", "53", "138", "66"]), [Write, Read, Flush, Write, Trim]);
    assert_eq!(ops(&["42", "42"]), [Write, Write]);
    assert_eq!(ops(&["2a", "42", "28"]), [Write, Trim, Read]);
    assert_eq!(ops(&["0x42", "42"]), [Trim, Trim]);
    let text = b"time_us,opcode,offset,length\n1,42,0,512\n";
    let reason = detect(&Sample::new(text, true)).unwrap().reason;
    assert!(reason.contains("SCSI opcodes in decimal"), "{reason}");
}

#[test]
fn labels_are_the_process_unless_there_is_a_label() {
    let text = "time_ns,op,offset,length,process,label\n0,R,0,1,java,\"db, wal\"\n";
    let mut reader = open_with(text, None).unwrap();
    assert_eq!(read_all(reader.as_mut()).unwrap().label, [0]);
    assert_eq!(reader.labels(), ["db, wal"]);
    let mut reader = open_with(&text.replace("label", "other"), None).unwrap();
    read_all(reader.as_mut()).unwrap();
    assert_eq!(reader.labels(), ["java"]);
}

#[test]
fn tables_of_other_people() {
    // RWBS letters, sectors, names with blanks.
    let (format, batch) = read(
        b"time_s,pid,process,rwbs,sector,sectors\n0.000000000,12565,DataXceiver for,RM,732579889,1\n\
          2.370937968,36841,,FWS,271389368,88\n3.0,1,x,N,0,0\n3.5,1,x,W,0,0\n",
    );
    assert_eq!(format, "csv");
    assert_eq!(batch.op, [OpKind::Read, OpKind::Flush, OpKind::Write]);
    assert_eq!(batch.length, [512, 0, 88 * 512]);
    assert_eq!((batch.pid, batch.label), (vec![12565, 36841, 36841], vec![0, 1, 1]));
    // Tabs, upper case, host and disk.
    let (_, batch) = read(b"Host\tDisk\tTime (ms)\tType\tLBA\tCount\na\t0\t1.5\tRead\t8\t3\nb\t0\t2\tWRITE\t9\t8\n");
    assert_eq!((batch.time_ns, batch.volume), (vec![1_500_000, 2_000_000], vec![0, 1]));
    assert_eq!((batch.offset, batch.length), (vec![4096, 4608], vec![1536, 4096]));
    // Semicolons, SCSI opcodes, a digest for two pages.
    let (_, batch) = read(
        b"ts_us;opcode;lba;bytes;md5\n1;0x2A;8;8192;8686b0d3553eb6f980fbbe2c927be5e9\n\
          2;28;8;8192;8686b0d3553eb6f980fbbe2c927be5e945ae785d59f0609ed7b1becba0685afd\n",
    );
    assert_eq!(batch.op, [OpKind::Write, OpKind::Read]);
    assert_eq!(batch.content_end, [2, 4]);
    assert_eq!(batch.content[2..], [0x8686_b0d3_553e_b6f9, 0x45ae_785d_59f0_609e]);
    assert_ne!(batch.content[0], batch.content[1]);
    // Blanks.
    let (_, batch) = read(b"time_ns op  offset length\n1   read 0 512\n 2 w 512 512\n");
    assert_eq!((batch.time_ns, batch.offset), (vec![1, 2], vec![0, 512]));
}

#[test]
fn dates_and_windows_times() {
    for stamps in [
        ["2023-01-05T12:34:56.5Z", "2023-01-05T12:34:57Z"],
        ["2023-01-05 12:34:56.5", "2023-01-05 12:34:57"],
        ["133173884965000000", "133173884970000000"],
    ] {
        let text = format!(
            "Timestamp,op,offset,length\n{},R,0,512\n{},W,512,512\n",
            stamps[0], stamps[1]
        );
        let (format, batch) = read(text.as_bytes());
        assert_eq!(
            (format, batch.time_ns[1] - batch.time_ns[0]),
            ("csv", 500_000_000),
            "{}",
            stamps[0]
        );
    }
}

#[test]
fn bars_decimal_commas_and_names_in_a_comment() {
    let wanted = (vec![1_500_000, 2_000_000], vec![4096, 8192]);
    for text in [
        "time_ms;op;offset;length\n1,5;R;4096;512\n2,0;W;8192;512\n",
        "time_ms|op|offset|length\n1.5|R|4096|512\n2|W|8192|512\n",
        "| time_ms | op | offset | length |\n| 1.5 | R | 4096 | 512 |\n| 2 | W | 8192 | 512 |\n",
        "# made by hand\n# time_ms,op,offset,length\n1.5,R,4096,512\n2,W,8192,512\n",
        "#time_ms op offset length\n1.5 R 4096 512\n2 W 8192 512\n",
    ] {
        let (format, batch) = read(text.as_bytes());
        assert_eq!(
            (format, (batch.time_ns, batch.offset)),
            ("csv", wanted.clone()),
            "{text}"
        );
    }
}

#[test]
fn ends_and_numbers_of_blocks_from_0_in_place_of_lengths() {
    let (_, batch) = read(b"time_us,op,start_lba,end_lba\n1,R,0,7\n2,R,8,23\n3,W,5,5\n");
    assert_eq!(
        (batch.offset, batch.length),
        (vec![0, 4096, 2560], vec![4096, 8192, 512])
    );
    let (_, batch) = read(b"time_us,op,start_lba,end_lba\n1,R,0,8\n2,R,8,24\n");
    assert_eq!(batch.length, [4096, 8192]);
    let (_, batch) = read(b"time_us,op,nsid,slba,nlb\n1,R,1,8,7\n2,W,1,16,0\n");
    assert_eq!((batch.offset, batch.length), (vec![4096, 8192], vec![4096, 512]));
    let (_, batch) = read(b"time_us,op,offset_mib,size_kib\n1,R,2,4\n2,W,0.5,32.5\n");
    assert_eq!(
        (batch.offset, batch.length),
        (vec![2 << 20, 1 << 19], vec![4096, 33_280])
    );
    let text = "time_us,op,start_lba,end_lba\n1,R,8,7\n2,R,8,15\n3,R,8,3\n4,R,0,7\n5,R,0,7\n";
    let mut reader = open_with(text, None).unwrap();
    assert_eq!(read_all(reader.as_mut()).unwrap().len(), 3);
}

#[test]
fn of_several_events_one_stands_for_a_request() {
    let text = "device,cpu,seq,time_s,pid,action,rwbs,sector,sectors\n\
                8.0,0,1,0.1,7,Q,WS,8,8\n8.0,0,2,0.3,7,D,WS,8,8\n8.0,1,1,0.2,9,D,R,64,8\n8.0,0,3,0.4,0,C,WS,8,8\n";
    let (_, batch) = read(text.as_bytes());
    assert_eq!((batch.offset, batch.pid), (vec![4096, 32_768], vec![7, 9]));
    // What blkparse prints with `-f`, a comma in the device.
    let columns = "device,-,-,time_s,pid,event,rwbs,sector,sectors";
    let text = "8,0 0 1 0.1 7 Q WS 8 8\n8,0 0 2 0.3 7 D WS 8 8\n8,16 1 1 0.2 9 D R 64 8\n";
    let sample = Sample {
        columns: Some(columns),
        ..Sample::new(text.as_bytes(), true)
    };
    let claim = detect(&sample).unwrap();
    assert_eq!((claim.guess.event, claim.guess.order), (Some('D'), Some(Order::Time)));
    let mut reader = open(Input::from_bytes("t", text.into()).unwrap(), &claim.guess).unwrap();
    let batch = read_all(reader.as_mut()).unwrap();
    assert_eq!(
        (batch.time_ns, batch.volume),
        (vec![300_000_000, 200_000_000], vec![0, 1])
    );
    assert_eq!(reader.volumes(), ["8.0", "8.16"]);
}

#[test]
fn an_event_without_a_column_of_events_is_refused() {
    let settings = Settings::NONE.with_event('Q');
    let open = |text: &str| open(Input::from_bytes("t.csv", text.into()).unwrap(), &settings).err();
    assert_eq!(
        open("time_ns,op,offset,length\n0,write,0,512\n").unwrap().to_string(),
        "t.csv: event Q was given, but no column says what each row is (event, action): expected none"
    );
    assert!(open("time_ns,op,offset,length,action\n0,write,0,512,Q\n").is_none());
}

#[test]
fn codes_where_every_operation_is_a_word_are_refused() {
    let mut settings = Settings::default();
    settings.set(Setting::Codes, "read=0").unwrap();
    let open = |header: &str, op: &str| {
        let text = format!("time_ns,{header},offset,length\n0,{op},0,512\n1,W,0,512\n");
        open(Input::from_bytes("t.csv", text.into()).unwrap(), &settings).err()
    };
    assert_eq!(
        open("op", "read").unwrap().to_string(),
        "t.csv: codes read=0 was given, but no operation is 0 or 1: expected none"
    );
    for (header, op) in [("op", "0"), ("op", "1"), ("op", "True"), ("is_write", "yes")] {
        assert!(open(header, op).is_none(), "{header} {op}");
    }
}

#[test]
fn a_unit_that_is_given_counts_over_what_the_header_says() {
    let mut settings = Settings::default();
    settings.set(Setting::TimeUnit, "ms").unwrap();
    settings.set(Setting::AddressUnit, "512").unwrap();
    settings.set(Setting::SizeUnit, "4KiB").unwrap();
    let text = "time_us,op,offset,length\n3,W,8,1\n";
    let mut reader = open(Input::from_bytes("t.csv", text.into()).unwrap(), &settings).unwrap();
    let batch = read_all(reader.as_mut()).unwrap();
    assert_eq!(
        (batch.time_ns[0], batch.offset[0], batch.length[0]),
        (3_000_000, 4096, 4096)
    );
}

#[test]
fn labels_and_volumes_in_quotes_hold_quotes() {
    let text = "time_ns,op,offset,length,host,volume,label\n0,W,0,512,\"h\"\"1\",\"a \"\"b\"\"\",\"say \"\"hi\"\"\"\n";
    let mut reader = open_with(text, None).unwrap();
    read_all(reader.as_mut()).unwrap();
    assert_eq!(reader.labels(), ["say \"hi\""]);
    assert_eq!(reader.volumes(), ["h\"1.a \"b\""]);
}

#[test]
fn a_bogus_word_among_the_columns_is_named() {
    let options = crate::ReadOptions {
        settings: Settings {
            columns: Some("time_us,op,adress,length".into()),
            ..Settings::default()
        },
        ..crate::ReadOptions::default()
    };
    let open = |text: &str| crate::open_bytes("t", text.into(), &options).err().unwrap().to_string();
    assert!(
        open("1 r 0 512\n").starts_with("columns time_us,op,adress,length: `adress` is not the name of a column"),
        "{}",
        open("1 r 0 512\n")
    );
}

#[test]
fn columns_may_be_named_by_a_setting() {
    let columns = "time_us,-,op,lba,sectors";
    for text in [
        "1,x,r,8,1\n2,x,w,9,2\n",
        "when,x,what,where,much\n1,x,r,8,1\n2,x,w,9,2\n",
    ] {
        let batch = read_all(open_with(text, Some(columns)).unwrap().as_mut()).unwrap();
        assert_eq!(
            (batch.time_ns, batch.length),
            (vec![1000, 2000], vec![512, 1024]),
            "{text}"
        );
    }
    let sample = Sample {
        columns: Some(columns),
        ..Sample::new(b"1,x,r,8,1\n", true)
    };
    assert_eq!(detect(&sample).unwrap().strength, Strength::Sure);
}

#[test]
fn a_trim_of_a_whole_drive_is_split() {
    let (_, batch) = read(b"# made by hand\ntime_ns,op,offset,length\n0,trim,4096,5000000000\n");
    assert_eq!(batch.length.iter().map(|&l| u64::from(l)).sum::<u64>(), 5_000_000_000);
    assert_eq!(batch.offset, [4096, 4096 + (1 << 31), 4096 + (1 << 32)]);
}

#[test]
fn a_header_without_a_needed_column_is_named() {
    let error = open_with("time_ns,op,offset\n1,read,0\n", None)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("t.csv, line 1: `time_ns,op,offset`: no column is named for the size"),
        "{error}"
    );
    let sample = Sample::new(b"time_ns,op,offset\n1,read,0\n", true);
    assert_eq!(detect(&sample).unwrap().strength, Strength::Fits);
    assert!(detect(&Sample::new(b"once upon a time\n", true)).is_none());
}

#[test]
fn comments_before_the_header_do_not_fill_the_memory() {
    let text = "# a comment\n".repeat(1000) + "time_ns,op,offset,length\n" + &"1,r,0,512\n".repeat(1 << 20);
    let mut reader = open_with(&text, None).unwrap();
    let buffered = reader.input().bytes().len();
    assert!(buffered < 3 << 20, "{buffered} bytes");
    assert_eq!(read_all(reader.as_mut()).unwrap().len(), 1 << 20);
}

#[test]
fn odd_lines_are_bad_lines_and_leave_no_trace() {
    let good = "1,r,0,512,a,7\n";
    for bad in [
        "1,r,0\n",
        "-1,r,0,512,a,7\n",
        "1,q,0,512,a,7\n",
        "1,r,-8,512,a,7\n",
        "1,r,0,4294967296,a,7\n",
        "1,r,0,512,a,x\n",
        "1,r,0,512,a,7+\n",
        "1,r,99999999999999999999,512,a,7\n",
        "1,r,0,51\x002,a,7\n",
    ] {
        let text = format!("time_ns,op,offset,length,volume,content\n{good}{bad}{good}");
        let mut reader = open_with(&text, None).unwrap();
        let batch = read_all(reader.as_mut()).unwrap();
        assert_eq!((batch.len(), batch.content_end), (2, vec![1, 2]), "{bad}");
        assert_eq!(reader.progress().skipped.len(), 1, "{bad}");
    }
}

/// An id stands for 4 KiB, of the last one maybe less: more of them than that makes have no place.
#[test]
fn more_ids_than_the_request_has_pages_are_a_bad_line() {
    let head = "time_ns,op,offset,length,content\n";
    let good = "1,w,0,8192,1+2\n2,w,512,4097,3;4\n3,r,0,1,5\n4,w,0,8192,6\n5,t,0,5000000000,7+8\n6,f,,,\n";
    for bad in ["7,w,0,8192,1+2+3\n", "7,r,0,4096,1;2\n", "7,f,,,1\n"] {
        let mut reader = open_with(&format!("{head}{good}{bad}{good}"), None).unwrap();
        let batch = read_all(reader.as_mut()).unwrap();
        assert_eq!(batch.content.len(), 16, "{bad}");
        let first = reader.progress().first_bad.expect("the bad line");
        assert_eq!(first.line, 8, "{bad}");
        assert!(
            first.reason.contains("expected at most one content id for each 4 KiB"),
            "{first:?}"
        );
    }
    let error = read_all(open_with(&format!("{head}1,w,0,4096,1+2\n"), None).unwrap().as_mut());
    let error = error.err().unwrap().to_string();
    assert!(
        error.starts_with("t.csv, line 2: `1,w,0,4096,1+2`: expected at most one content id for each 4 KiB"),
        "{error}"
    );
}

/// Digests of 512 B each make the ids that they make without anything between them.
#[test]
fn digests_of_sectors_may_stand_apart() {
    let digests: Vec<String> = (0..16u8).map(|n| format!("{:032x}", u128::from(n) << 77 | 5)).collect();
    let ids = |between: &str| {
        let row = format!("time_ns,op,offset,length,md5\n1,w,0,8192,{}\n", digests.join(between));
        read_all(open_with(&row, None).unwrap().as_mut()).unwrap().content
    };
    assert_eq!(ids("").len(), 2);
    assert_eq!([ids("+"), ids(";")], [ids(""), ids("")]);
}
