import { beforeAll, describe, expect, test, vi } from "vitest";
import { createFaultReporter } from "../../../../src/serve/faults.ts";
import type { Failure } from "../../../../src/http/problems.ts";
import { runProgram, waterBedProcedure, wireFormats } from "@protoport/testing";

// The output on standard error without `onFault`.

const inHandler = "[ERR_HANDLER_FAILED] a handler or an interceptor failed";
const inAdmit = "[ERR_REQUEST_FAILED] cannot process the request";
const watchReadingsProcedure = "/greenhouse.v1.GreenhouseService/WatchReadings";
const all = Object.keys(wireFormats);

describe("a printed fault", () => {
  let printed = "";
  beforeAll(async () => {
    const program = "protoport/testing/src/gateway/broken-greenhouse.ts";
    const { stderr, exitCode } = await runProgram(process.execPath, [program]);
    expect(exitCode).toBe(0);
    printed = stderr;
  });

  // oxfmt-ignore
  const rows = [
    { place: "handler", what: inHandler, procedure: waterBedProcedure, formats: all },
    { place: "interceptor", what: inHandler, procedure: waterBedProcedure, formats: all },
    { place: "stream", what: inHandler, procedure: watchReadingsProcedure,
      formats: ["connect-proto", "grpc", "grpc-web"] },
    { place: "admit", what: inAdmit, procedure: waterBedProcedure, formats: all },
    { place: "later-admit", what: inAdmit, procedure: waterBedProcedure, formats: all },
  ];
  const named = rows.flatMap(({ formats, ...row }) => [
    ...formats.map((format) => ({ ...row, id: `${row.place}-of-${format}` })),
    { ...row, id: `${row.place}-by-fetch-of-connect-proto` },
  ]);
  test.each(named)("from $id contains its procedure, request id and stack", ({ what, procedure, id }) => {
    const line = `${what} in ${procedure}, request ${id}\n`;
    expect(printed.split(line)).toHaveLength(2);
    const [, after = ""] = printed.split(line);
    expect(after).toMatch(/^ {4}TypeError: the pump is broken\n {8}at .*broken-greenhouse\.ts:\d+/);
    expect(after.slice(0, after.indexOf(" in /"))).toMatch(
      /\n {2}caused by\n {4}RangeError: no\n {4}water\n {8}at .*broken-greenhouse/,
    );
  });

  test("has no secrets of the request", () => expect(printed).not.toContain("s3cret"));
});

function secret(): never {
  throw new Error("secret");
}

const handlerFailed: Failure = { errorCode: "ERR_HANDLER_FAILED", what: "a handler has failed" };

function linesOf(report: (onFault: ReturnType<typeof createFaultReporter>) => void): string[] {
  using printing = vi.spyOn(console, "error").mockReturnValue();
  report(createFaultReporter());
  return printing.mock.calls.flatMap(([text]) => String(text).split("\n"));
}

describe("the printed text of a thrown value", () => {
  test.each<{ name: string; thrown: unknown; want: readonly string[] }>([
    { name: "a string", thrown: "no water", want: ["    string: no water"] },
    { name: "undefined", thrown: undefined, want: ["    undefined: undefined"] },
    { name: "an object", thrown: { request: "s3cret" }, want: ["    an object without a stack"] },
    { name: "control characters", thrown: "\u001b[2J\u202e\ud800", want: ["    string: \ufffd[2J\ufffd\ufffd"] },
    { name: "a string of several lines", thrown: "one\ntwo", want: ["    string: one", "    two"] },
    { name: "a string that is too long", thrown: "x".repeat(5000), want: [`    string: ${"x".repeat(4096)}`] },
  ])("describes $name in short, printable lines", ({ thrown, want }) => {
    const printed = linesOf((report) => report(thrown, handlerFailed));
    expect(printed).toEqual(["[ERR_HANDLER_FAILED] a handler has failed", ...want]);
  });

  test.each(["stack", "cause"])("is a placeholder for an error with an unreadable %s property", (name) => {
    const error = Object.defineProperty(new Error(), name, { get: secret });
    for (const thrown of [error, new Proxy(error, { get: secret, getPrototypeOf: secret })]) {
      const lines = linesOf((report) => report(thrown, handlerFailed));
      expect(lines).toEqual(["[ERR_HANDLER_FAILED] a handler has failed", "    an error that cannot be read"]);
    }
  });

  test("is truncated after six causes", () => {
    const error = Array.from({ length: 9 }).reduce((cause) => new Error("why", { cause }), "why");
    const lines = linesOf((report) => report(error, handlerFailed));
    expect(lines.filter((line) => line === "    Error: why")).toHaveLength(6);
  });
});
