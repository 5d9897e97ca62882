import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { formatGrpcTimeout, readRestTimeout } from "../../../src/protocols/shared/timeouts.ts";

describe("readRestTimeout()", () => {
  // oxfmt-ignore
  test.each<[header: Record<string, string>, want: number | undefined]>([
    [{}, undefined], [{ "connect-timeout-ms": "1500" }, 1500], [{ "connect-timeout-ms": "0" }, 0],
    [{ "connect-timeout-ms": "9999999999" }, 9_999_999_999], [{ "grpc-timeout": "1H" }, 3_600_000],
    [{ "grpc-timeout": "2M" }, 120_000], [{ "grpc-timeout": "3S" }, 3000], [{ "grpc-timeout": "4m" }, 4],
    [{ "grpc-timeout": "5u" }, 0.005], [{ "grpc-timeout": "6n" }, 0.000006], [{ "grpc-timeout": "0n" }, 0],
    [{ "grpc-timeout": "99999999H" }, 99_999_999 * 3_600_000], [{ "x-server-timeout": "1.5" }, 1500],
    [{ "x-server-timeout": "0.0001" }, 0.1], [{ "x-server-timeout": "10" }, 10_000],
    [{ "x-server-timeout": "10", "grpc-timeout": "2S", "connect-timeout-ms": "3000" }, 2000],
  ])("reads %j as %s ms", (header, want) =>
    expect(readRestTimeout(new Headers(header), Number.POSITIVE_INFINITY)).toEqual({ timeoutMs: want }));

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

test("formatGrpcTimeout() writes at most eight digits", () =>
  expect([99_999_999, 100_000_000].map((ms) => formatGrpcTimeout(ms))).toEqual(["99999999m", "100000S"]));
