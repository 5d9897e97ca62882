import { create, createRegistry, equals, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { createLargeBytesEncoder } from "../../../src/gateway/protocols/large-bytes.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { FileService } from "../../gen/files/v1/files_pb.ts";
import { SinkSchema } from "../../gen/kitchensink/v1/kitchen_sink_pb.ts";
import { startFiles } from "../../support/gateway/files.ts";
import { http2Engines } from "../../support/server/plant-server.ts";

const large = 64 * 1024;
const bytesOf = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(7);

/** A field that no definition here has: number 200, a varint. */
const unknown = { no: 200, wireType: 0, data: Uint8Array.of(1) };

describe("a message with large bytes", () => {
  test.each<{ name: string; init: MessageInitShape<typeof SinkSchema> }>([
    { name: "alone", init: { fBytes: bytesOf(large) } },
    { name: "between others", init: { fString: "a", fBytes: bytesOf(large), ids: [1n], nested: { text: "b" } } },
    { name: "beside an unknown field", init: { fBytes: bytesOf(large), $unknown: [unknown] } },
  ])("is two pieces, the second of which is not copied, $name", ({ init }) => {
    const message = create(SinkSchema, init);
    const pieces = createLargeBytesEncoder(SinkSchema, undefined)?.(message) ?? [];
    expect(pieces[1]).toBe(message.fBytes);
    const read = fromBinary(SinkSchema, Buffer.concat(pieces));
    expect(equals(SinkSchema, read, message, { registry: createRegistry(), unknown: true })).toBe(true);
  });

  test.each<{ name: string; init: MessageInitShape<typeof SinkSchema> }>([
    { name: "one byte less", init: { fBytes: bytesOf(large - 1) } },
    { name: "of a repeated field", init: { blobs: [bytesOf(large)] } },
    { name: "of a oneof", init: { choice: { case: "choiceBytes", value: bytesOf(large) } } },
    { name: "of a message inside", init: { child: { fBytes: bytesOf(large) } } },
  ])("is not, $name", ({ init }) => {
    expect(createLargeBytesEncoder(SinkSchema, undefined)?.(create(SinkSchema, init))).toBeUndefined();
  });
});

describe.each(http2Engines)("over gRPC by %s", (http2) => {
  test.each([large - 1, large, 1_000_000])("%i bytes come back as they were sent", async (length) => {
    await using files = await startFiles(http2, { echo: (body) => body });
    const file = create(HttpBodySchema, { contentType: "text/plain", data: bytesOf(length), extensions: [{}] });
    const answer = await clientOf(files.address.port).echo(file);
    expect(equals(HttpBodySchema, answer, file)).toBe(true);
  });

  test("a message that is too large is refused, and counts whole", async () => {
    const contentType = "a";
    // Tag, length and text of the content type; tag and length of the data.
    const writeMaxBytes = 3 + 4 + large;
    await using files = await startFiles(http2, { echo: ({ data }) => ({ contentType, data }) }, { writeMaxBytes });
    const client = clientOf(files.address.port);
    expect((await client.echo({ data: bytesOf(large) })).data).toHaveLength(large);
    const tooLarge = client.echo({ data: bytesOf(large + 1) });
    await expect(tooLarge.catch((error: unknown) => ConnectError.from(error).code)).resolves.toBe(
      Code.ResourceExhausted,
    );
  });
});

function clientOf(port: number): ReturnType<typeof createClient<typeof FileService>> {
  return createClient(FileService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
}
