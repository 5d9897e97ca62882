import { once } from "node:events";
import { connect } from "node:http2";
import { buffer } from "node:stream/consumers";
import { create, createRegistry, type DescMessage, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type, UninterpretedOptionSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { createBinaryWriter } from "../../../../src/protobuf/messages/binary/binary-writer.ts";
import { writeEnvelope } from "../../../../src/protocols/envelope/envelope.ts";
import { HttpBodySchema } from "../../../../src/protobuf/gen/google/api/httpbody_pb.ts";
import { FileService } from "../../../../../testing/src/gen/files/v1/files_pb.ts";
import { SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { http2Servers, messageIn, stringField, within } from "@protoport/testing";
import { startFiles } from "../../../../../testing/src/gateway/files.ts";

const large = 64 * 1024;
const bytesOf = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(7);

/** An unknown field with number 200, a varint. */
const unknown = { no: 200, wireType: 0, data: Uint8Array.of(1) };

/** A proto2 message with only a required bytes field. */
const field = [{ ...stringField("f", 1), type: FieldDescriptorProto_Type.BYTES, label: 2 }];
const requiredBytes = messageIn({ name: "required.proto", messageType: [{ name: "Required", field }] }, "Required");

test.each<[name: string, desc: DescMessage, init: Record<string, unknown>]>([
  ["as the only field", SinkSchema, { fBytes: bytesOf(large) }],
  ["one byte below the minimum", SinkSchema, { fBytes: bytesOf(large - 1) }],
  ["between other fields", SinkSchema, { fString: "a", fBytes: bytesOf(large), ids: [1n], nested: { text: "b" } }],
  ["next to an unknown field", SinkSchema, { fBytes: bytesOf(large), $unknown: [unknown] }],
  ["in a repeated field", SinkSchema, { blobs: [bytesOf(large)] }],
  ["in a oneof", SinkSchema, { choice: { case: "choiceBytes", value: bytesOf(large) } }],
  ["in a nested message", SinkSchema, { child: { fBytes: bytesOf(large) } }],
  ["with explicit presence", UninterpretedOptionSchema, { identifierValue: "a", stringValue: bytesOf(large) }],
  ["as a required field", requiredBytes, { f: bytesOf(large) }],
])("a large bytes field %s is encoded and decoded unchanged", (_, desc, init) => {
  const message = create(desc, init);
  const bytes = createBinaryWriter(desc, undefined)(message);
  expect(bytes).toHaveLength(toBinary(desc, message).byteLength);
  expect(equals(desc, fromBinary(desc, bytes), message, { registry: createRegistry(), unknown: true })).toBe(true);
});

test.each([large - 1, large])("a large bytes field does not share its %i bytes with the encoded message", (length) => {
  const message = create(SinkSchema, { fBytes: bytesOf(length) });
  const bytes = createBinaryWriter(SinkSchema, undefined)(message);
  const before = Uint8Array.from(bytes);
  message.fBytes.fill(0);
  expect(Buffer.compare(bytes, before)).toBe(0);
});

describe.each(http2Servers)("a large bytes field over gRPC, %s", (http2) => {
  test.each([large - 1, large, 1_000_000])("is echoed unchanged with %i bytes", async (length) => {
    await using files = await startFiles(http2, { echo: (body) => body });
    const file = create(HttpBodySchema, { contentType: "text/plain", data: bytesOf(length), extensions: [{}] });
    expect(equals(HttpBodySchema, await clientOf(files.address.port).echo(file), file)).toBe(true);
  });

  test("is sent unchanged when the handler reuses its memory", async () => {
    const memory = bytesOf(300_000);
    await using files = await startFiles(http2, { echo: ({ data }) => ({ data: memory.fill(data[0] ?? 0) }) });
    const { port } = files.address;
    // The flow-control windows let a part through, and the rest waits until the client reads.
    const slow = await beginEcho(port, 1);
    expect((await clientOf(port).echo({ data: Uint8Array.of(2) })).data[0]).toBe(2);
    expect((await slow.readToEnd()).subarray(5 + 4).equals(Buffer.alloc(memory.byteLength, 1))).toBe(true);
  });

  test("counts towards writeMaxBytes", async () => {
    const contentType = "a";
    // The content type's tag, length and text take 3 bytes, and the data's tag and length take 4.
    const writeMaxBytes = 3 + 4 + large;
    await using files = await startFiles(http2, { echo: ({ data }) => ({ contentType, data }) }, { writeMaxBytes });
    const client = clientOf(files.address.port);
    expect((await client.echo({ data: bytesOf(large) })).data).toHaveLength(large);
    await expect(client.echo({ data: bytesOf(large + 1) })).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });
});

function clientOf(port: number): ReturnType<typeof createClient<typeof FileService>> {
  return createClient(FileService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}

/** Calls `Echo`, and reads its response only on demand. */
async function beginEcho(port: number, first: number): Promise<{ readToEnd: () => Promise<Buffer> }> {
  const session = connect(`http://127.0.0.1:${port}`);
  const request = { ":method": "POST", ":path": "/files.v1.FileService/Echo", te: "trailers" };
  const stream = session.request({ ...request, "content-type": "application/grpc" });
  stream.end(writeEnvelope(0, toBinary(HttpBodySchema, create(HttpBodySchema, { data: Uint8Array.of(first) }))));
  await within(once(stream, "response"), "the header of an answer");
  return {
    readToEnd: async () => {
      const response = await within(buffer(stream), "the response");
      session.close();
      return response;
    },
  };
}
