import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { readRestTimeout } from "../../../src/protocols/shared/timeouts.ts";

describe("readRestTimeout()", () => {
  test.each<{ header: Record<string, string>; want: number | undefined }>([
    { header: {}, want: undefined },
    { header: { "connect-timeout-ms": "1500" }, want: 1500 },
    { header: { "connect-timeout-ms": "0" }, want: 0 },
    { header: { "connect-timeout-ms": "9999999999" }, want: 9_999_999_999 },
    { header: { "grpc-timeout": "1H" }, want: 3_600_000 },
    { header: { "grpc-timeout": "2M" }, want: 120_000 },
    { header: { "grpc-timeout": "3S" }, want: 3000 },
    { header: { "grpc-timeout": "4m" }, want: 4 },
    { header: { "grpc-timeout": "5u" }, want: 0.005 },
    { header: { "grpc-timeout": "6n" }, want: 0.000006 },
    { header: { "grpc-timeout": "0n" }, want: 0 },
    { header: { "grpc-timeout": "99999999H" }, want: 99_999_999 * 3_600_000 },
    { header: { "x-server-timeout": "1.5" }, want: 1500 },
    { header: { "x-server-timeout": "0.0001" }, want: 0.1 },
    { header: { "x-server-timeout": "10" }, want: 10_000 },
    { header: { "x-server-timeout": "10", "grpc-timeout": "2S", "connect-timeout-ms": "3000" }, want: 2000 },
  ])("reads $header as $want ms", ({ header, want }) => {
    expect(readRestTimeout(new Headers(header), Number.POSITIVE_INFINITY)).toEqual(
      want === undefined ? {} : { timeoutMs: want },
    );
  });

  // oxfmt-ignore
  test.each([
    ["connect-timeout-ms", ""], ["connect-timeout-ms", "-1"], ["connect-timeout-ms", "1.5"],
    ["connect-timeout-ms", "1e3"], ["connect-timeout-ms", " 1"], ["connect-timeout-ms", "12345678901"],
    ["connect-timeout-ms", "1, 2"], ["grpc-timeout", "1"], ["grpc-timeout", "S"], ["grpc-timeout", "1s"],
    ["grpc-timeout", "1 S"], ["grpc-timeout", "123456789S"], ["grpc-timeout", "-1S"], ["x-server-timeout", "abc"],
    ["x-server-timeout", "-1"], ["x-server-timeout", ".5"], ["x-server-timeout", "1."], ["x-server-timeout", "1e3"],
    ["x-server-timeout", "NaN"], ["x-server-timeout", "Infinity"],
  ])("the field %s with the value %j is refused", (name, value) => {
    const { error } = readRestTimeout({ get: (one) => (one === name ? value : null) }, Number.POSITIVE_INFINITY);
    expect(error?.code).toBe(Code.InvalidArgument);
    expect(error?.rawMessage).toContain(`timeout value: ${value}`);
  });

  test.each([
    { header: { "grpc-timeout": "2S", "connect-timeout-ms": "1000" }, refused: false },
    { header: { "grpc-timeout": "2S", "connect-timeout-ms": "1001" }, refused: true },
    { header: { "x-server-timeout": "1.001" }, refused: true },
  ])("compares the shortest timeout in $header with maxTimeoutMs", ({ header, refused }) => {
    expect(readRestTimeout(new Headers(header), 1000).error !== undefined).toBe(refused);
  });
});
