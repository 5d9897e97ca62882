import { Metadata, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { toEnvelope } from "../../../gateway/src/protocols/index.ts";
import { SingleResponse } from "../../src/calls/response.ts";
import { statusOf } from "../../src/calls/status.ts";

const messages = ["a", "b"].map((text) => toEnvelope(Buffer.from(text)));

async function read(sent: typeof messages): Promise<unknown[]> {
  const response = new SingleResponse();
  for (const message of sent) response.send(message, () => undefined);
  response.end();
  const received: unknown[] = [];
  for await (const message of response) received.push(message);
  return received;
}

test.each([
  { name: "no message", sent: [], error: "[internal] the handler sent no message" },
  { name: "several messages", sent: messages, error: "[internal] the handler sent several messages" },
])("sending $name fails a client stream", ({ sent, error }) => expect(read(sent)).rejects.toThrow(error));

test("a client stream's response has the handler's message", async () =>
  expect(await read(messages.slice(1))).toEqual(messages.slice(1)));

test.for([
  ["the trailer", new Metadata(), new Metadata()],
  ["the error's metadata without a trailer", undefined, new Metadata()],
  ["no metadata without both", undefined, undefined],
] as const)("the status for an error has %s", ([, trailer, metadata]) => {
  const end = statusOf({ code: status.ABORTED, message: "m", metadata }, trailer, false);
  expect(end).toEqual({ code: status.ABORTED, details: "m", metadata: end.metadata });
  expect(end.metadata).toBe(trailer ?? metadata ?? null);
});
