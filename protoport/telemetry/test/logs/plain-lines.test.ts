import { tracingChannel } from "node:diagnostics_channel";
import { type Logger, symbols } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openLog } from "../../src/logs/log.ts";

// The log writes most lines without pino, but with the bytes that pino writes with the same options.

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 0, 31, 1, 2, 3, 4) }));
afterEach(() => void vi.useRealTimers());

/** A logger which may have a custom level. */
type ChildLogger = Pick<Logger, "info" | "warn"> & { readonly notice?: Logger["info"] };

function compare(log: (logger: Logger) => void): readonly [string[], string[]] {
  const own: string[] = [];
  const ofPino: string[] = [];
  log(openLog("trace", { write: (line) => void own.push(line) }));
  const withoutHook = openLog("trace", { write: (line) => void ofPino.push(line) });
  Reflect.set(withoutHook, symbols.hooksSym, { logMethod: undefined });
  // pino reads the hook when the level is set.
  withoutHook.level = "trace";
  log(withoutHook);
  return [own, ofPino];
}

const circular: Record<string, unknown> = {};
circular["self"] = circular;
class Named {
  readonly own = 1;
  get inherited(): number {
    return 2;
  }
}
const inheriting: object = Object.setPrototypeOf({ own: 2 }, { inherited: 1 });

const fields: Readonly<Record<string, object>> = {
  none: {},
  "no prototype": Object.setPrototypeOf({ a: 1 }, null),
  "of a call": { requestId: "a-1", procedure: undefined, path: '/v1/a?b="c\\\\d"', httpStatus: 200, durationMs: 0.125 },
  "names of the line": { level: "x", time: "y", msg: "z", pid: 1, hostname: "h" },
  "names that are numbers": { b: 1, 2: "two", 1: "one", a: 2 },
  "an odd name": { 'a"b\\n\u0001\u2028é': 1, __proto__: null, constructor: 1 },
  numbers: { a: -0, b: NaN, c: Infinity, d: 1e21, e: 1e-7, f: 0.1, g: 2 ** 53 },
  "values without JSON": { a: undefined, b: () => 1, c: Symbol("s"), d: null },
  strings: { a: "\u0000\u001f\u007f\u0085\u2028\u2029", b: "é😀", c: "\\ud800", d: "x".repeat(1000) },
  "a lone surrogate": { a: "\ud800", b: "x".repeat(200) + "\udfff" },
  "an integer": { a: 1n },
  nested: { a: { b: [1, { c: "d" }], e: undefined }, f: [undefined, () => 1] },
  "a value with toJSON": { a: { toJSON: (name: string) => `name ${name}` }, b: new Date(0), c: new URL("http://a") },
  "a nested value with toJSON": { a: { b: { toJSON: (name: string) => `name ${name}` } } },
  "toJSON itself": { a: 1, toJSON: () => ({ b: 2 }) },
  circular,
  "a circular value": { circular },
  "a getter": {
    a: 1,
    get b() {
      return 2;
    },
  },
  inherited: inheriting,
  "an instance": new Named(),
  array: [1, "two"],
  bytes: new Uint8Array([1, 2]),
  boxed: Object("ab"),
  map: new Map([[1, 2]]),
  error: new Error("plain"),
  err: { err: new Error("field"), a: 1 },
  "err that is undefined": { err: undefined, a: 1 },
  request: { method: "GET", headers: { a: "b" }, socket: {}, url: "/" },
  response: { setHeader: () => 1, statusCode: 200 },
};

test.each(Object.entries(fields))("lines with the fields %s have the same bytes as those of pino", (_, value) => {
  for (const level of ["trace", "debug", "info", "warn", "error", "fatal"] as const) {
    const [own, ofPino] = compare((logger) => {
      logger[level](value, 'a %s message with "quotes" and é');
      logger[level](value);
      logger[level](value, "with %s", "an argument");
      logger[level](value, undefined);
    });
    expect(own).toEqual(ofPino);
    expect(own).toHaveLength(4);
  }
});

test("lines of changed loggers and children have the same bytes as those of pino", () => {
  const loggers: readonly ((logger: Logger) => ChildLogger)[] = [
    (logger) => logger.child({}, { level: "info" }),
    (logger) => logger.child({ a: 1, b: "c" }).child({ d: 2 }),
    (logger) => logger.child({}, { msgPrefix: "prefix " }),
    (logger) => logger.child({}, { redact: ["secret"] }),
    (logger) => logger.child({}, { serializers: { secret: () => "hidden" } }),
    (logger) => logger.child({}, { formatters: { log: (all) => ({ ...all, added: 1 }) } }),
    (logger) => logger.child({}, { formatters: { bindings: () => ({ z: 1 }) } }),
    (logger) => logger.child({}, { customLevels: { notice: 35 }, level: "info" }),
    (logger) => (logger.setBindings({ later: 1 }), logger),
    (logger) => ((logger.level = "warn"), logger),
  ];
  for (const change of loggers) {
    const [own, ofPino] = compare((logger) => {
      const changed = change(logger);
      changed.info({ secret: "s", n: 1 }, "one");
      changed.warn({ secret: "s" }, "two");
      changed.notice?.({ n: 1 }, "three");
    });
    expect(own).toEqual(ofPino);
  }
});

test("a tracer of pino observes each line", () => {
  const seen: unknown[] = [];
  const end = (message: unknown): void => void seen.push(message);
  const channel = tracingChannel("pino_asJson");
  channel.end.subscribe(end);
  try {
    compare((logger) => logger.info({ a: 1 }, "one"));
  } finally {
    channel.end.unsubscribe(end);
  }
  expect(seen).toHaveLength(2);
});

test("a destination that needs metadata gets the message of each line", () => {
  const destination = { [Symbol.for("pino.metadata")]: true, lastMsg: "", write() {} };
  openLog("info", destination).info({ a: 1 }, "one");
  expect(destination.lastMsg).toBe("one");
});

test("lines have their own time when the clock moves forward and back", () => {
  const [own, ofPino] = compare((logger) => {
    for (const ms of [0, 1, 1, 999, 86_400_000, -5]) {
      vi.setSystemTime(Date.UTC(2026, 0, 31) + ms);
      logger.info({ ms }, "at");
    }
  });
  expect(own).toEqual(ofPino);
});
