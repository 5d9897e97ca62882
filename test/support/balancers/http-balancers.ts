import { join } from "node:path";
import { openPython } from "../../../protoport/testing/src/process/python.ts";
import { freePort } from "../../../protoport/testing/src/process/free-port.ts";
// oxfmt-ignore
import { type BalancerProgram, nginxProgram, startBalancerProcess
} from "../../../protoport/testing/src/process/balancer-process.ts";

/** A load balancer in front of one server, which forwards requests over the same HTTP version. */
export type HttpBalancer = AsyncDisposable & { readonly ports: HttpPorts };
/** The loopback ports for each version, both without TLS; HTTP/2 with prior knowledge. */
type HttpPorts = { readonly "1.1": number; readonly "2": number };

export const httpBalancers: readonly {
  readonly name: string;
  /** Starts one in front of a loopback port. The first start may install it. */
  readonly start: (serverPort: number) => Promise<HttpBalancer>;
}[] = [
  { name: "HAProxy", start: (serverPort) => startHttpBalancer(serverPort, haproxy) },
  { name: "nginx", start: (serverPort) => startHttpBalancer(serverPort, nginx) },
  {
    name: "Envoy",
    start: async (serverPort) => {
      const programs = await openPython(join(import.meta.dirname, "requirements.txt"));
      return await startHttpBalancer(serverPort, (ports, at) => envoy(ports, at, join(programs, "envoy")));
    },
  },
];

type Program = Omit<BalancerProgram, "ports">;

async function startHttpBalancer(
  serverPort: number,
  programOf: (ports: HttpPorts, serverPort: number) => Program,
): Promise<HttpBalancer> {
  const ports = { "1.1": await freePort(), "2": await freePort() };
  const balancer = await startBalancerProcess({ ...programOf(ports, serverPort), ports: Object.values(ports) });
  return { ports, [Symbol.asyncDispose]: () => balancer[Symbol.asyncDispose]() };
}

function haproxy(ports: HttpPorts, serverPort: number): Program {
  const text = `
defaults
    mode http
    # Otherwise it waits for the response after the client has disconnected.
    option abortonclose
    timeout connect 5s
    timeout client 1m
    timeout server 1m

listen http1
    bind 127.0.0.1:${ports["1.1"]}
    server one 127.0.0.1:${serverPort}

listen http2
    bind 127.0.0.1:${ports["2"]} proto h2
    server one 127.0.0.1:${serverPort} proto h2
`;
  return { file: "haproxy", args: ["-db", "-f", "haproxy.cfg"], config: { name: "haproxy.cfg", text } };
}

// nginx uses HTTP/2 to a server only for gRPC.
function nginx(ports: HttpPorts, serverPort: number): Program {
  const toHttp1 = `proxy_pass http://127.0.0.1:${serverPort}; proxy_http_version 1.1; proxy_set_header Connection "";`;
  return nginxProgram(`
    server {
        listen 127.0.0.1:${ports["1.1"]};
        location / { ${toHttp1} }
    }
    server {
        listen 127.0.0.1:${ports["2"]} http2;
        location / { ${toHttp1} }
        location ~ ^/[a-z0-9.]+[.]v1[.] { grpc_pass grpc://127.0.0.1:${serverPort}; }
    }`);
}

const loopback = (port: number): object => ({ socket_address: { address: "127.0.0.1", port_value: port } });
const extensions = "type.googleapis.com/envoy.extensions";

function envoy(ports: HttpPorts, serverPort: number, file: string): Program {
  const listener = (name: keyof HttpPorts): object => ({
    address: loopback(ports[name]),
    filter_chains: [
      {
        filters: [
          {
            name: "http",
            typed_config: {
              "@type": `${extensions}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
              stat_prefix: "http",
              // Sets no timeout.
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [{ match: { prefix: "/" }, route: { cluster: name, timeout: "0s" } }],
                  },
                ],
              },
              http_filters: [
                { name: "router", typed_config: { "@type": `${extensions}.filters.http.router.v3.Router` } },
              ],
            },
          },
        ],
      },
    ],
  });
  const cluster = (name: keyof HttpPorts, protocol: string): object => ({
    name,
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${extensions}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { [protocol]: {} },
      },
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(serverPort) } }] }],
    },
  });
  const text = JSON.stringify({
    static_resources: {
      listeners: [listener("1.1"), listener("2")],
      clusters: [cluster("1.1", "http_protocol_options"), cluster("2", "http2_protocol_options")],
    },
  });
  // JSON is valid YAML.
  const args = ["--config-path", "envoy.yaml", "--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];
  return { file, args, config: { name: "envoy.yaml", text } };
}
