import { join } from "node:path";
import { describe } from "vitest";
import { describeClient } from "../../../support/clients/describe-client.ts";

const clients: readonly { readonly name: string; readonly program: string; readonly protocol?: string }[] = [
  { name: "ts-proto and grpc-js", program: "ts-proto.ts" },
  { name: "proto-loader and grpc-js", program: "proto-loader.ts" },
  { name: "connect-node over gRPC", program: "connect-node.ts", protocol: "grpc" },
  { name: "connect-node over gRPC-Web", program: "connect-node.ts", protocol: "grpc-web" },
  { name: "connect-node over Connect", program: "connect-node.ts", protocol: "connect" },
];

describe("TypeScript", () => {
  for (const { name, program, protocol = "" } of clients) {
    const command = [process.execPath, join(import.meta.dirname, program)] as const;
    describeClient({ name, build: async () => ({ command, environment: { PROTOCOL: protocol } }) });
  }
});
