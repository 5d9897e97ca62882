import { createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService, grpcHead, outcomeOf, startScriptedServer } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../src/client/index.ts";
import { dataFrame, frameFlag, headersFrame } from "../../../testing/src/http/http2-frames.ts";

/** A message of 1,000 bytes, with an unknown field, in an envelope. */
const largest = Buffer.concat([Buffer.of(0, 0, 0, 0x03, 0xe8, 0x7a, 0xe5, 0x07), Buffer.alloc(997)]);

const tooLarge = "ResourceExhausted: the response is larger than 1000 bytes";

test.each([
  { name: "with as many bytes as the limit", more: Buffer.alloc(0), isEnded: true, want: "ok" },
  { name: "with one byte more than the limit", more: Buffer.alloc(1), isEnded: false, want: tooLarge },
])("a response $name in two pieces gets $want", async ({ more, isEnded, want }) => {
  const pieces = [largest.subarray(0, 600), Buffer.concat([largest.subarray(600), more])];
  await using server = await startScriptedServer({
    request: (connection, id) => {
      connection.send(headersFrame(id, grpcHead), ...pieces.map((piece) => dataFrame(id, piece)));
      if (isEnded) connection.send(headersFrame(id, [["grpc-status", "0"]], frameFlag.endStream));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, readMaxBytes: 1_000 });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
});
