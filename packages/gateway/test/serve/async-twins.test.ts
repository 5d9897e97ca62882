import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Admit, Endpoint } from "../../src/index.ts";
import { within } from "../../../testing/src/deadline.ts";
import { carrierNames, openEveryCarrier } from "../../../testing/src/gateway/every-carrier.ts";
import { kitchenSinkOptions } from "../../../testing/src/gateway/kitchen-sink.ts";

// A hook or an endpoint may decide synchronously or return a promise. Each failure below is tested in every combination:
// an unhandled rejection would exit the process, and the request would never get a response.

const admits: Readonly<Record<string, Admit | undefined>> = {
  "no admit": undefined,
  "a synchronous admit": () => undefined,
  "an asynchronous admit": async () => {},
};

function refuse(): never {
  throw new ConnectError("not yours", Code.PermissionDenied);
}
const unwritable = { httpStatus: 600, body: "" };

interface Failure {
  readonly name: string;
  readonly answer: Endpoint["answer"];
  readonly want: number;
  /** How many faults of the server are reported. */
  readonly faults: number;
}

const failures: readonly Failure[] = [
  { name: "throws", answer: refuse, want: 403, faults: 0 },
  { name: "rejects", answer: async () => refuse(), want: 403, faults: 0 },
  { name: "returns an unwritable response", answer: () => unwritable, want: 500, faults: 1 },
  { name: "resolves with an unwritable response", answer: async () => unwritable, want: 500, faults: 1 },
];

describe.each(Object.entries(admits))("after %s", (_name, admit) => {
  test.each(failures)("an endpoint that $name gets $want over every carrier", async ({ answer, want, faults }) => {
    const reported: unknown[] = [];
    await using gateway = await openEveryCarrier({
      ...kitchenSinkOptions,
      ...(admit && { admit }),
      endpoints: [{ path: "/fails", open: false, answer }],
      onFault: (error) => void reported.push(error),
    });
    for (const carrier of carrierNames) {
      reported.length = 0;
      const asked = gateway.ask(carrier, { httpMethod: "GET", path: "/fails", header: [] });
      const { httpStatus } = await within(asked, `the response by ${carrier}`);
      expect([carrier, httpStatus, reported.length]).toEqual([carrier, want, faults]);
    }
  });
});

test.each([
  { name: "throws", admit: refuse },
  { name: "rejects", admit: async () => refuse() },
])("an admit that $name refuses over every carrier, and the endpoint is not called", async ({ admit }) => {
  let calls = 0;
  const answer: Endpoint["answer"] = () => {
    calls += 1;
    return { httpStatus: 200, body: "" };
  };
  await using gateway = await openEveryCarrier({
    ...kitchenSinkOptions,
    admit,
    endpoints: [{ path: "/page", open: false, answer }],
  });
  for (const carrier of carrierNames) {
    const asked = gateway.ask(carrier, { httpMethod: "GET", path: "/page", header: [] });
    const { httpStatus } = await within(asked, `the response by ${carrier}`);
    expect([carrier, httpStatus, calls]).toEqual([carrier, 403, 0]);
  }
});
