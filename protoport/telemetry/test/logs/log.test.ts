import { expect, test } from "vitest";
import { openLogLines, runProgram } from "@protoport/testing";
import { openLog, openReserveLog } from "../../src/logs/log.ts";

test("a log line is a JSON object with level and UTC time", () => {
  const { log, lines } = openLogLines("info");
  log.info({ orders: 3 }, "hello");
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(lines()).toEqual([{ level: "info", time, orders: 3, msg: "hello" }]);
});

test("an error is logged with its causes, but without additional properties", () => {
  const { log, lines, text } = openLogLines("info");
  const headers = { authorization: "Bearer s3cret-s3cret-s3cret" };
  const cause = Object.assign(new Error("connection refused"), { headers });
  log.error({ err: new TypeError("no response", { cause }) }, "fault");
  const stack = expect.stringContaining("log.test.ts");
  const loggedCause = { type: "Error", message: "connection refused", stack };
  expect(lines()[0]?.["err"]).toEqual({ type: "TypeError", message: "no response", stack, cause: loggedCause });
  expect(text()).not.toContain("s3cret");
});

test("a thrown value other than an Error is logged as a string", () => {
  const { log, lines } = openLogLines("info");
  log.error({ err: "out of soil" }, "fault");
  expect(lines()[0]?.["err"]).toEqual({ type: "string", message: "out of soil" });
});

test("an error that causes itself is logged with five nested causes", () => {
  const { log, lines } = openLogLines("info");
  const error = new Error("again");
  error.cause = error;
  log.error({ err: error }, "fault");
  expect(lines()).toHaveLength(1);
  expect(JSON.stringify(lines()[0]).match(/"message":"again"/g)).toHaveLength(1 + 5);
});

test("dropped lines are reported in a log line", async () => {
  const module = new URL("../../src/logs/log.ts", import.meta.url).href;
  const program = `
    const { openLog } = await import(${JSON.stringify(module)});
    const log = openLog("info");
    for (let i = 0; i < 50; i += 1) log.info("x".repeat(100_000));
    const logNext = () => (process.stderr.writableLength > 0 ? setTimeout(logNext, 1) : log.info("the next"));
    // Runs after the log's immediate, which writes the lines.
    setImmediate(logNext);`;
  const shown = '"$0" --input-type=module --eval "$1" 2>&1 | tail -n 2 >&2';
  const { stderr } = await runProgram("sh", ["-c", shown, process.execPath, program]);
  const [reported, next] = stderr.split("\n");
  expect(JSON.parse(reported ?? "")).toMatchObject({ level: "error", errorCode: "ERR_LOG_LINES_DROPPED", dropped: 8 });
  expect(JSON.parse(next ?? "")).toMatchObject({ msg: "the next" });
});

test("a reserve log's line is kept when a full buffer drops others", async () => {
  const module = new URL("../../src/logs/log.ts", import.meta.url).href;
  const program = `
    const { openLog, openReserveLog } = await import(${JSON.stringify(module)});
    for (let i = 0; i < 50; i += 1) openLog("info").info("x".repeat(100_000));
    openReserveLog("info").info("kept");`;
  const shown = '"$0" --input-type=module --eval "$1" 2>&1 | tail -n 1 >&2';
  const { stderr } = await runProgram("sh", ["-c", shown, process.execPath, program]);
  expect(JSON.parse(stderr)).toMatchObject({ msg: "kept" });
});

test.each([
  { name: "coloured", hasColors: true, green: "\u001b[32minfo \u001b[39m" },
  { name: "plain", hasColors: false, green: "info " },
])("lines on a terminal are $name if hasColors is $hasColors", async ({ hasColors, green }) => {
  const module = new URL("../../src/logs/log.ts", import.meta.url).href;
  const program = `
    Object.assign(process.stderr, { isTTY: true, hasColors: () => ${hasColors} });
    const { openLog, openReserveLog } = await import(${JSON.stringify(module)});
    const log = openLog("info");
    log.info("one");
    log.flush(() => process.stderr.write("flushed\\n"));
    openReserveLog("info").info("two");`;
  const { stderr } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
  const texts = stderr.split("\n").map((line) => line.slice(line.indexOf(" ") + 1));
  expect(texts).toEqual([`${green} one`, "flushed", `${green} two`, ""]);
});

test("a line that is logged just before process.exit is written", async () => {
  const module = new URL("../../src/logs/log.ts", import.meta.url).href;
  const program = `
    const { openLog } = await import(${JSON.stringify(module)});
    openLog("info").info("the last");
    process.exit(0);`;
  const { stderr } = await runProgram(process.execPath, ["--input-type=module", "--eval", program]);
  expect(JSON.parse(stderr)).toMatchObject({ level: "info", msg: "the last" });
});

const listeners = (): number => process.stderr.listenerCount("error") + process.listenerCount("exit");

test("several logs share the same stderr and process listeners", () => {
  openLog("silent");
  const ofOne = listeners();
  openLog("silent");
  openReserveLog("silent");
  expect(listeners()).toBe(ofOne);
});
