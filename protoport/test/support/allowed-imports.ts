const inHttp = (...modules: readonly string[]): string[] => modules.map((name) => `gateway/http/${name}`);
const inHandlers = (...modules: readonly string[]): string[] => modules.map((name) => `grpc-handlers/${name}`);

/** The modules that a module, or part of one, may import. Any module may list a `gen` folder. */
export const allowedImports: Readonly<Record<string, readonly string[]>> = {
  proxy: ["proxy/definitions/service-config.ts", "proxy/forward", "proxy/upstreams", "gateway"],
  // oxfmt-ignore
  "proxy/command": [
    "proxy", "proxy/definitions", "proxy/settings", "proxy/upstreams", "auth", "auth/inputs", "command-line",
    "docs-page", "gateway/mcp", "telemetry/logs", "telemetry/metrics", "gateway/validation", "gateway/health",
    "gateway", "gateway/openapi",
  ],
  // oxfmt-ignore
  "proxy/settings": [
    "auth", "auth/inputs", "command-line", "command-line/settings", "proxy/definitions",
    "proxy/definitions/read-yaml.ts", "proxy/upstreams", "gateway/health", "gateway", "gateway/openapi",
  ],
  // oxfmt-ignore
  "proxy/definitions": [
    "auth", "proxy/definitions/compare", "proxy/definitions/read-yaml.ts", "proxy/definitions/service-config.ts",
    "command-line", "command-line/settings", "docs-page", "gateway/mcp", "gateway/validation", "gateway",
    "gateway/openapi",
  ],
  "proxy/definitions/compare": ["auth", "gateway", "gateway/openapi"],
  "proxy/definitions/service-config.ts": ["proxy/definitions/read-yaml.ts", "gateway"],
  "proxy/definitions/read-yaml.ts": ["gateway"],
  "proxy/forward": ["proxy/client", "proxy/upstreams", "command-line", "gateway/protobuf/gen", "gateway"],
  "proxy/client": ["proxy/upstreams", "gateway/engine", "gateway"],
  "proxy/upstreams": ["gateway/engine", "gateway/protobuf/gen", "gateway"],

  "rest-client": ["gateway"],
  "docs-page": ["gateway"],

  auth: ["auth/inputs", "gateway/health", "gateway", "gateway/openapi"],
  "auth/inputs": ["command-line", "gateway"],
  frameworks: ["gateway"],
  "grpc-handlers": [...inHandlers("calls", "descriptors", "nestjs", "nice-grpc"), "frameworks", "gateway"],
  "grpc-handlers/nestjs": ["frameworks", "gateway"],
  "grpc-handlers/nice-grpc": [],
  "grpc-handlers/calls": ["gateway"],
  "grpc-handlers/descriptors": ["gateway/protobuf/gen", "gateway"],
  "telemetry/logs": ["gateway/health", "gateway"],
  "telemetry/metrics": ["telemetry/conventions", "gateway"],
  "telemetry/opentelemetry": ["telemetry/conventions", "gateway", "gateway/fetch"],
  "telemetry/conventions": ["gateway"],
  "gateway/engine": [],

  // oxfmt-ignore
  gateway: [
    "gateway/engine", "gateway/fetch", "gateway/mcp", "gateway/openapi", "gateway/protobuf", "gateway/protocols",
    "gateway/protocols/compression", "gateway/protocols/rest/rules", "gateway/serve", "gateway/validation",
  ],
  "gateway/fetch": ["gateway/protobuf", "gateway/protocols", "gateway/serve"],
  "gateway/health": ["gateway/protobuf", "gateway/protobuf/gen", "gateway/serve"],
  "gateway/reflection": ["gateway/protobuf", "gateway/protobuf/gen"],

  "gateway/validation": [
    "gateway/openapi",
    "gateway/protobuf",
    "gateway/protobuf/gen",
    "gateway/protocols",
    "gateway/serve",
  ],
  "gateway/mcp": ["gateway/openapi", "gateway/protobuf", "gateway/protocols"],
  "gateway/openapi": ["gateway/protobuf", "gateway/protobuf/gen", "gateway/protocols"],
  "gateway/serve": ["gateway/protobuf", "gateway/protocols"],
  "gateway/protocols": ["gateway/protobuf", "gateway/protocols/rest/rules"],
  "gateway/protocols/compression": ["gateway/protobuf", "gateway/protocols"],
  "gateway/protocols/rest/rules": ["gateway/protobuf", "gateway/protobuf/gen"],
  "gateway/protobuf": ["call-errors.ts", "descriptors", "messages/binary", "messages/codegen.ts", "messages/json"].map(
    (name) => `gateway/protobuf/${name}`,
  ),
  "gateway/protobuf/call-errors.ts": [],
  "gateway/protobuf/descriptors": ["gateway/protobuf/call-errors.ts", "gateway/protobuf/gen"],
  "gateway/protobuf/messages/binary": ["gateway/protobuf/messages/codegen.ts"],
  "gateway/protobuf/messages/codegen.ts": [],
  "gateway/protobuf/messages/json": ["gateway/protobuf/call-errors.ts", "gateway/protobuf/messages/codegen.ts"],
  "command-line": ["command-line/files", "command-line/settings", "gateway"],
  "command-line/files": [],
  "command-line/settings": ["gateway"],
  "gateway/http": inHttp("exchange", "fetch-exchange.ts", "node", "option-checks.ts", "problems.ts", "trusted-proxies"),
  "gateway/http/node": inHttp("exchange"),
  "gateway/http/fetch-exchange.ts": inHttp("exchange"),
  "gateway/http/trusted-proxies": inHttp("exchange"),
  "gateway/http/exchange": [],
  "gateway/http/option-checks.ts": [],
  "gateway/http/problems.ts": [],
};

/** The modules that every module may import, for error identifiers and option checks. */
export const allowedEverywhere: readonly string[] = ["gateway/http", ...inHttp("option-checks.ts", "problems.ts")];

/** The packages that import each entry of another package. */
// oxfmt-ignore
export const entryImporters: Readonly<Record<string, readonly string[]>> = {
  auth: ["proxy"],
  "auth/inputs": ["proxy"],
  "command-line": ["auth", "proxy"],
  "command-line/settings": ["proxy"],
  "docs-page": ["proxy"],
  "frameworks/nest-mount": ["grpc-handlers"],
  gateway: ["auth", "docs-page", "frameworks", "grpc-handlers", "proxy", "telemetry"],
  "gateway/descriptors": ["grpc-handlers", "proxy"],
  "gateway/errors": ["auth", "command-line", "grpc-handlers", "proxy", "rest-client"],
  "gateway/exchange": ["docs-page", "frameworks", "grpc-handlers", "proxy", "rest-client"],
  "gateway/fetch": ["telemetry"],
  "gateway/forward": ["frameworks", "grpc-handlers", "proxy"],
  "gateway/gen/google/api/annotations_pb.js": ["grpc-handlers"],
  "gateway/gen/grpc/health/v1/health_pb.js": ["proxy"],
  "gateway/gen/grpc/reflection/v1/reflection_pb.js": ["proxy"],
  "gateway/gen/grpc/reflection/v1alpha/reflection_pb.js": ["proxy"],
  "gateway/health": ["auth", "proxy", "telemetry"],
  "gateway/http2-client": ["proxy"],
  "gateway/mcp": ["proxy"],
  "gateway/messages": ["grpc-handlers", "proxy", "rest-client", "telemetry"],
  "gateway/openapi": ["auth", "proxy"],
  "gateway/openapi-checks": ["proxy"],
  "gateway/options": ["auth", "command-line", "docs-page", "frameworks", "grpc-handlers", "proxy", "rest-client",
    "telemetry"],
  "gateway/rest": ["proxy", "rest-client"],
  "gateway/validation": ["proxy"],
  "telemetry/logs": ["proxy"],
  "telemetry/metrics": ["proxy"],
};
