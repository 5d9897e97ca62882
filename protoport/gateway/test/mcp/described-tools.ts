import { create, createFileRegistry, type Message, type MessageInitShape } from "@bufbuild/protobuf";
// oxfmt-ignore
import { type DescriptorProtoSchema, FileDescriptorProtoSchema, FileDescriptorSetSchema, StringValueSchema
} from "@bufbuild/protobuf/wkt";
import { createGateway, type FetchHandler, type GatewayOptions } from "../../src/index.ts";
import { createMcp, type McpOptions } from "../../src/mcp/index.ts";
import { type HttpRequest, statelessRequest } from "@protoport/testing";

/** An RPC's name and its types, which are `hostile.v1.M` by default. */
export type DescribedRpc = { readonly name: string; readonly inputType?: string; readonly outputType?: string };

/** A message, as in a FileDescriptorProto. */
export type DescribedMessage = Exclude<MessageInitShape<typeof DescriptorProtoSchema>, Message>;

/** Further parts for a gateway whose RPCs a test describes. */
export interface DescribedOptions {
  readonly messages?: readonly DescribedMessage[];
  readonly file?: { readonly package?: string; readonly syntax?: string };
  readonly mcp?: McpOptions;
  readonly gateway?: Partial<GatewayOptions>;
}

/** Returns a gateway whose tools are a service `S`'s RPCs, which a test describes, as a descriptor set does. */
export function serveDescribed(
  rpcs: readonly DescribedRpc[],
  { messages = [], file = {}, mcp = { tools: ["*"] }, gateway }: DescribedOptions = {},
): FetchHandler {
  const type = ".hostile.v1.M";
  const method = rpcs.map((rpc) => ({ inputType: type, outputType: type, ...rpc }));
  const wrappers = StringValueSchema.file.proto;
  const common = { name: "h.proto", package: "hostile.v1", syntax: "proto3", dependency: [wrappers.name] };
  const messageType = messages.length === 0 ? [{ name: "M" }] : [...messages];
  const parts = { ...common, messageType, ...file, service: [{ name: "S", method }] };
  const described = create(FileDescriptorProtoSchema, parts);
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [wrappers, described] }));
  const service = registry.getService(`${described.package}.S`);
  if (service === undefined) throw new Error("there is no service");
  return createGateway({ routes: (router) => void router.service(service, {}), mcp: createMcp(mcp), ...gateway }).fetch;
}

/** A page in `tools/list`. */
export interface ToolPage {
  readonly httpStatus: number;
  readonly text: string;
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor: string | undefined;
}

/** Sends a request. */
export async function postTo(
  fetch: FetchHandler,
  { header, body }: HttpRequest,
): Promise<{ readonly httpStatus: number; readonly text: string }> {
  const init = { method: "POST", headers: Object.fromEntries(header), body: String(body) };
  const response = await fetch(new Request("http://a.example/mcp", init));
  return { httpStatus: response.status, text: await response.text() };
}

/** Returns a page of `tools/list`. */
export async function pageOf(fetch: FetchHandler, cursor?: string): Promise<ToolPage> {
  const response = await postTo(fetch, statelessRequest("tools/list", cursor === undefined ? {} : { cursor }));
  const { result }: { result?: Pick<ToolPage, "tools" | "nextCursor"> } = JSON.parse(response.text);
  return { ...response, tools: result?.tools ?? [], nextCursor: result?.nextCursor };
}
