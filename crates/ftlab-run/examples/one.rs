use ftlab_run::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let spec = parse_spec(&args[1]).unwrap();
    match run(&spec, &Members::default(), &mut Unobserved) {
        Ok(o) => {
            let mut s = o.summary;
            for k in ["drive"] {
                s.as_object_mut().unwrap().remove(k);
            }
            println!("{}", serde_json::to_string_pretty(&s).unwrap())
        }
        Err(e) => println!("{e}"),
    }
}
