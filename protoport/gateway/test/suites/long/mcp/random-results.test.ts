import type { DescMessage, Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createGateway } from "../../../../src/index.ts";
import { createMcp } from "../../../../src/mcp/index.ts";
// oxfmt-ignore
import { Dice, type HttpRequest, kitchenSinkOptions, numRunsOf, statelessRequest, testSeed, toolNameOf
} from "@protoport/testing";
import { randomTypes, rollMessage } from "../../../../../testing/src/gateway/random-message.ts";
import { EchoSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySchema } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { GetShelfRequestSchema } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

// Compares tool results with REST responses, whose JSON other suites compare with the protobuf specification.

let message: Message;
const { fetch } = createGateway({
  ...kitchenSinkOptions,
  interceptors: [(next) => async (request) => Object.assign(await next(request), { message })],
  jsonOptions: { registry: randomTypes },
  mcp: createMcp({ tools: ["kitchensink.v1.*"] }),
  // Some messages have no JSON form. For example, an Any has an unknown type.
  onFault: () => {},
});

async function send({ header, path, body }: HttpRequest): Promise<{ httpStatus: number; text: string }> {
  const init = { method: "POST", headers: Object.fromEntries(header), body: String(body) };
  const response = await fetch(new Request(`http://a.example${path}`, init));
  return { httpStatus: response.status, text: await response.text() };
}

const resultOf = (json: string): string =>
  `"result":{"content":[{"type":"text","text":${JSON.stringify(json)}}],"structuredContent":${json},`;

// oxfmt-ignore
const cases: readonly { name: string; desc: DescMessage; path: string; procedure: string; request: object }[] = [
  { name: "proto3 fields", desc: EchoSchema, path: "/v1/sinks", procedure: "/kitchensink.v1.KitchenSink/Create",
    request: {} },
  { name: "proto2 extensions", desc: LegacySchema, path: "/v1/legacies", procedure: "/kitchensink.v1.LegacySink/Keep",
    request: { name: "a" } },
  { name: "field masks", desc: GetShelfRequestSchema, path: "/v1/shelves:get",
    procedure: "/kitchensink.v1.Shelves/GetShelf", request: {} },
];

test.each(cases)("tools return random $name in the same JSON as REST", async ({ desc, path, procedure, request }) => {
  const runs = numRunsOf(200);
  let written = 0;
  const body = Buffer.from(JSON.stringify(request));
  const rest = { httpMethod: "POST", path, header: [["content-type", "application/json"]] as const, body };
  const tool = statelessRequest("tools/call", { name: toolNameOf(procedure), arguments: request });
  for (let run = 0; run < runs; run += 1) {
    message = rollMessage(new Dice(testSeed * 1_000_003 + run), desc, 2);
    const expected = await send(rest);
    const { httpStatus, text } = await send(tool);
    const isWritten = expected.httpStatus === 200;
    expect(httpStatus).toBe(200);
    expect(text).toContain(isWritten ? resultOf(expected.text) : '"isError":true');
    if (isWritten) written += 1;
  }
  // The oldest protobuf-es also refuses to write unknown closed enum values, which most messages have.
  expect(written).toBeGreaterThan(runs / 10);
});
