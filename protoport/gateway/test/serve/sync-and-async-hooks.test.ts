import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Admit, Endpoint } from "../../src/index.ts";
import { kitchenSinkOptions, openEveryTransport, transportNames, within } from "../../../testing/src/index.ts";

// A hook or an endpoint may decide synchronously or return a promise. Each failure below is tested in every
// combination. An unhandled rejection would exit the process, and the request would never get a response.

function refuse(): never {
  throw new ConnectError("not yours", Code.PermissionDenied);
}

function fault(): never {
  throw new TypeError("secret");
}

const admits: Readonly<Record<string, Admit | undefined>> = {
  "no admit": undefined,
  "a synchronous admit": () => undefined,
  "an asynchronous admit": async () => {},
  "an admit that throws": refuse,
  "an admit that rejects": async () => refuse(),
};

const unwritable = { httpStatus: 600, body: "" };

interface Failure {
  readonly name: string;
  readonly handle: Endpoint["handle"];
  readonly want: number;
  /** How many faults are reported. */
  readonly faults: number;
}

const failures: readonly Failure[] = [
  { name: "throws", handle: refuse, want: 403, faults: 0 },
  { name: "rejects", handle: async () => refuse(), want: 403, faults: 0 },
  { name: "throws an unexpected error", handle: fault, want: 500, faults: 1 },
  { name: "rejects with an unexpected error", handle: async () => fault(), want: 500, faults: 1 },
  { name: "returns an unwritable response", handle: () => unwritable, want: 500, faults: 1 },
  { name: "resolves with an unwritable response", handle: async () => unwritable, want: 500, faults: 1 },
];

describe.each(Object.entries(admits))("endpoints with %s", (admitName, admit) => {
  const isAdmitted = !/throws|rejects/.test(admitName);

  test.each(failures)("an endpoint that $name results in status $want if called", async ({ handle, want, faults }) => {
    const reported: unknown[] = [];
    let calls = 0;
    const counted: Endpoint["handle"] = (request) => ((calls += 1), handle(request));
    const onFault = (error: unknown): void => void reported.push(error);
    const endpoints = [{ path: "/fails", open: false, handle: counted }];
    const options = { ...kitchenSinkOptions, endpoints, onFault, ...(admit && { admit }) };
    await using gateway = await openEveryTransport(options);
    for (const transport of transportNames) {
      reported.length = calls = 0;
      const pending = gateway.ask(transport, { httpMethod: "GET", path: "/fails", header: [] });
      const { httpStatus, body } = await within(pending, `the response by ${transport}`);
      const wanted = isAdmitted ? [want, faults, 1] : [403, 0, 0];
      expect([transport, httpStatus, reported.length, calls]).toEqual([transport, ...wanted]);
      expect(String(body)).not.toContain("secret");
    }
  });
});
