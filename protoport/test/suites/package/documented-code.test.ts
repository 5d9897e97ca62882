import { checkCode } from "../../support/docs/compile-blocks.ts";
import { pageBlocks } from "../../support/docs/page-blocks.ts";

// Excludes the tutorial's blocks, which are one program's files that tutorial.test.ts compiles. Also excludes the
// plugins' blocks, which the suite `frameworks` runs with the frameworks.
const blocks = pageBlocks.filter(
  ({ language, page, text }) =>
    language === "ts" &&
    page !== "protoport/docs/tutorials/first-service.md" &&
    !/"@protoport\/(?:frameworks\/|grpc-handlers\/nestjs)/.test(text),
);

// The declarations that the text around the blocks assumes.
const surroundings = `
import type { ConnectRouter } from "@connectrpc/connect";
import type { TokenVerifier } from "@protoport/auth";
import type { createGateway as create } from "@protoport/gateway";
import type { ProtocolExtension } from "@protoport/gateway/mcp";
import type { IncomingMessage, ServerResponse } from "node:http";
interface Reply {
  readonly raw: ServerResponse;
  getHeaders(): Record<string, number | string | string[] | undefined>;
}
/** The parts of Express and Fastify applications that the blocks use. */
interface App {
  use(handler: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): void;
  addHook(
    name: "onRequest",
    hook: (request: { raw: IncomingMessage }, reply: Reply, done: () => void) => void,
  ): void;
}
declare global {
  const app: App;
  const gateway: ReturnType<typeof create>;
  const token: string;
  const grpcPort: number;
  const routes: (router: ConnectRouter) => void;
  const createGateway: typeof create;
  const isSigned: (bytes: Uint8Array, signature: string | null) => boolean;
  const callerOf: (authorization: string | null) => Promise<string | undefined>;
  const mcp: ProtocolExtension;
  const verifier: TokenVerifier;
  const mayCall: (caller: string, procedure: string) => boolean;
}
`;
checkCode(blocks, surroundings, "protoport/test");
