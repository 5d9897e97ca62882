/** What tests of the proxy share: proxies, their upstreams and clients, scripted servers, and descriptor sets. */
export * from "../comparison.ts";
export * from "../gateway/call-end.ts";
export * from "../gateway/descriptor-set.ts";
export * from "../gateway/envelope.ts";
export * from "../gateway/file-init.ts";
// oxfmt-ignore
export { type Calling, callings, getReadingProcedure, startGreenhouse, type TestGreenhouse, waterBedProcedure
} from "../gateway/greenhouse.ts";
export * from "../gateway/greenhouse-client.ts";
export * from "../gateway/mcp.ts";
export * from "../gateway/proxy-command.ts";
export * from "../gateway/proxy-process.ts";
export * from "../gateway/proxy.ts";
export * from "../gateway/reflected-upstream.ts";
export * from "../gateway/restricted.ts";
export * from "../gateway/scripted-http2-server.ts";
export * from "../gateway/test-gateway.ts";
export * from "../http2/http2-requests.ts";
export * from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
export * from "../gen/files/v1/files_pb.ts";
export * from "../gen/kitchensink/v1/kitchen_sink_pb.ts";
export * from "../gen/library/v1/library_pb.ts";
export * from "../gen/orders/v1/orders_pb.ts";
export { Shelves } from "../gen/kitchensink/v1/shelves_pb.ts";
