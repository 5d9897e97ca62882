import { type ServerDuplexStream, type ServerReadableStream, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { waitSomeTurns } from "../../../testing/src/wait-some-turns.ts";
import { type Callback, failing, messageOf } from "../faulty-calls.ts";
import { startGarden } from "../garden.ts";
import { callGarden, type CallOutcome, type ClientCall, type Message } from "../grpc-js-client.ts";

const unknown = { code: status.UNKNOWN, details: "Unknown error" };

interface Case {
  readonly name: string;
  readonly method: ClientCall["method"];
  readonly handlers: object;
  readonly outcome: Partial<CallOutcome>;
  /** The reported faults' messages. */
  readonly faults: readonly unknown[];
}

test.each<Case>([
  {
    name: "a handler can respond after its for await loop stopped early",
    method: "AddTrees",
    handlers: {
      addTrees: async (call: ServerReadableStream<Message, Message>, callback: Callback) => {
        for await (const _ of call) break;
        await waitSomeTurns();
        callback(null, { treeCount: 1 });
      },
    },
    outcome: { code: status.OK, messages: [{ treeCount: 1 }] },
    faults: [],
  },
  {
    name: "an exception in a for await loop is reported once",
    method: "TradeTrees",
    handlers: {
      tradeTrees: async (call: ServerDuplexStream<Message, Message>) => {
        for await (const _ of call) failing();
      },
    },
    outcome: unknown,
    faults: ["index out of range"],
  },
])("$name", async ({ method, handlers, outcome, faults }) => {
  await using garden = await startGarden({ ...handlers });
  const options = { deadline: Date.now() + 5000 };
  expect(await callGarden(garden.address.port, { method, options })).toMatchObject(outcome);
  expect(garden.faults.map(({ error }) => messageOf(error))).toEqual(faults);
});
