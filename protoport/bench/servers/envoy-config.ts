import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { descriptorSetOf } from "../../testing/src/gateway/descriptor-set.ts";

const extensions = "type.googleapis.com/envoy.extensions";

/** The ports of Envoy and of its upstream, both on loopback. */
interface Ports {
  readonly port: number;
  readonly upstreamPort: number;
}

/** Returns a minimal Envoy configuration, which forwards gRPC and transcodes REST for the library. */
export function envoyConfig({ port, upstreamPort }: Ports): object {
  const transcoder = {
    "@type": `${extensions}.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder`,
    proto_descriptor_bin: Buffer.from(descriptorSetOf(LibraryService.file)).toString("base64"),
    services: [LibraryService.typeName],
    convert_grpc_status: true,
  };
  const route = { match: { prefix: "/" }, route: { cluster: "library" } };
  const manager = {
    "@type": `${extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "http",
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
    http_filters: [
      { name: "transcoder", typed_config: transcoder },
      { name: "router", typed_config: { "@type": `${extensions}.filters.http.router.v3.Router` } },
    ],
  };
  const cluster = {
    name: "library",
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${extensions}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: {
      cluster_name: "library",
      endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(upstreamPort) } }] }],
    },
  };
  const listener = {
    address: loopback(port),
    filter_chains: [{ filters: [{ name: "http", typed_config: manager }] }],
  };
  return { static_resources: { listeners: [listener], clusters: [cluster] } };
}

function loopback(port: number): object {
  return { socket_address: { address: "127.0.0.1", port_value: port } };
}
