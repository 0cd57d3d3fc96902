import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.BufferedInputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * A key-value store as log-structured ones are: a log, a table in memory, sorted tables in files, compaction of four into one.
 *
 * Arguments: folder, number of updates, KiB of the table in memory, and, unless left out, number of keys (half the updates) and mean
 * bytes of a value (200). Keys are skewed; nothing is read back but by compaction.
 */
public final class Store {
    private final Path folder;
    private final int flushBytes;
    private TreeMap<String, byte[]> memory = new TreeMap<>();
    private int memoryBytes;
    private final List<List<Path>> levels = new ArrayList<>();
    private FileChannel log;
    private Path logPath;
    private int files;

    private Store(Path folder, int flushBytes) throws IOException {
        this.folder = Files.createDirectories(folder);
        this.flushBytes = flushBytes;
        openLog();
    }

    private void openLog() throws IOException {
        logPath = folder.resolve(String.format("%06d.log", ++files));
        log = FileChannel.open(logPath, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    }

    void put(String key, byte[] value) throws IOException {
        appendToLog(key, value);
        memory.put(key, value);
        memoryBytes += key.length() + value.length;
        if (memoryBytes >= flushBytes) {
            flush();
        }
    }

    private void appendToLog(String key, byte[] value) throws IOException {
        ByteBuffer record = ByteBuffer.allocate(8 + key.length() + value.length);
        record.putInt(key.length()).putInt(value.length).put(key.getBytes()).put(value).flip();
        while (record.hasRemaining()) {
            log.write(record);
        }
    }

    /** The table in memory becomes a file, and its log goes. */
    private void flush() throws IOException {
        addTable(0, writeTable(memory));
        memory = new TreeMap<>();
        memoryBytes = 0;
        log.close();
        Files.delete(logPath);
        openLog();
    }

    private void addTable(int level, Path table) throws IOException {
        while (levels.size() <= level) {
            levels.add(new ArrayList<>());
        }
        levels.get(level).add(table);
        if (levels.get(level).size() == 4) {
            compact(level);
        }
    }

    /** Four tables of a level become one of the next. */
    private void compact(int level) throws IOException {
        TreeMap<String, byte[]> merged = new TreeMap<>();
        List<Path> tables = levels.get(level);
        for (Path table : tables) {
            readTable(table, merged);
        }
        Path result = writeTable(merged);
        for (Path table : tables) {
            Files.delete(table);
        }
        tables.clear();
        addTable(level + 1, result);
    }

    private Path writeTable(Map<String, byte[]> rows) throws IOException {
        Path path = folder.resolve(String.format("%06d.table", ++files));
        try (OutputStream raw = Files.newOutputStream(path);
             DataOutputStream out = new DataOutputStream(new BufferedOutputStream(raw, 32768))) {
            for (Map.Entry<String, byte[]> row : rows.entrySet()) {
                out.writeUTF(row.getKey());
                out.writeInt(row.getValue().length);
                out.write(row.getValue());
            }
        }
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            channel.force(true);
        }
        return path;
    }

    private static void readTable(Path path, Map<String, byte[]> into) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), 32768))) {
            while (true) {
                String key = in.readUTF();
                byte[] value = new byte[in.readInt()];
                in.readFully(value);
                into.put(key, value);
            }
        } catch (EOFException end) {
            // The end of the table.
        }
    }

    public static void main(String[] arguments) throws IOException {
        int updates = Integer.parseInt(arguments[1]);
        Store store = new Store(Path.of(arguments[0]), 1024 * Integer.parseInt(arguments[2]));
        int all = arguments.length > 3 ? Integer.parseInt(arguments[3]) : updates / 2;
        int mean = arguments.length > 4 ? Integer.parseInt(arguments[4]) : 200;
        Random random = new Random(1);
        for (int i = 0; i < updates; i++) {
            byte[] value = new byte[mean / 2 + random.nextInt(mean)];
            random.nextBytes(value);
            // Half of the updates go to a tenth of the keys.
            int keys = random.nextBoolean() ? all / 10 : all;
            store.put(String.format("key%08d", random.nextInt(keys + 1)), value);
        }
        store.flush();
        store.log.close();
    }
}
