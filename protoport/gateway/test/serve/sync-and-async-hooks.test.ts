import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { Admit, Endpoint } from "../../src/index.ts";
import { kitchenSinkOptions, openEveryTransport, transportNames, within } from "../../../testing/src/index.ts";

// A hook or an endpoint may decide synchronously or return a promise. Each failure below is tested in every
// combination. An unhandled rejection would exit the process, and the request would never get a response.

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
  readonly handle: Endpoint["handle"];
  readonly want: number;
  /** How many faults are reported. */
  readonly faults: number;
}

const failures: readonly Failure[] = [
  { name: "throws", handle: refuse, want: 403, faults: 0 },
  { name: "rejects", handle: async () => refuse(), want: 403, faults: 0 },
  { name: "returns an unwritable response", handle: () => unwritable, want: 500, faults: 1 },
  { name: "resolves with an unwritable response", handle: async () => unwritable, want: 500, faults: 1 },
];

describe.each(Object.entries(admits))("endpoints with %s", (_name, admit) => {
  test.each(failures)(
    "an endpoint that $name results in status $want on every server",
    async ({ handle, want, faults }) => {
      const reported: unknown[] = [];
      await using gateway = await openEveryTransport({
        ...kitchenSinkOptions,
        ...(admit && { admit }),
        endpoints: [{ path: "/fails", open: false, handle }],
        onFault: (error) => void reported.push(error),
      });
      for (const transport of transportNames) {
        reported.length = 0;
        const pending = gateway.ask(transport, { httpMethod: "GET", path: "/fails", header: [] });
        const { httpStatus } = await within(pending, `the response by ${transport}`);
        expect([transport, httpStatus, reported.length]).toEqual([transport, want, faults]);
      }
    },
  );
});

test.each([
  { name: "throws", admit: refuse },
  { name: "rejects", admit: async () => refuse() },
])("when admit $name, no server calls the endpoint", async ({ admit }) => {
  let calls = 0;
  const handle: Endpoint["handle"] = () => {
    calls += 1;
    return { httpStatus: 200, body: "" };
  };
  await using gateway = await openEveryTransport({
    ...kitchenSinkOptions,
    admit,
    endpoints: [{ path: "/page", open: false, handle }],
  });
  for (const transport of transportNames) {
    const pending = gateway.ask(transport, { httpMethod: "GET", path: "/page", header: [] });
    const { httpStatus } = await within(pending, `the response by ${transport}`);
    expect([transport, httpStatus, calls]).toEqual([transport, 403, 0]);
  }
});
