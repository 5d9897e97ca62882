import type { TokenVerifier } from "../../../packages/auth/src/index.ts";
import { openMemoryStore } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/index.ts";
import { createPlantServer, type PlantServerOptions } from "../../../src/server/index.ts";
import type { Certificate } from "../../../packages/testing/src/carriers/certificate.ts";
import type { Address, Field } from "../../../packages/testing/src/carriers/exchange.ts";
import { isNodeEngine } from "../../../packages/testing/src/gateway/test-engine.ts";

/** The tokens that the servers under test know, each good or bad in its own way. */
export const tokens = {
  /** Has every scope. */
  good: "good-token-0123456789",
  /** Was good once. */
  expired: "expired-token-0123456789",
  /** Belongs to a caller that may not delete. */
  narrow: "narrow-token-0123456789",
  /** Was issued by a provider that cannot be asked now. */
  uncheckable: "uncheckable-token-0123456789",
  /** Nobody knows it. */
  unknown: "unknown-token-0123456789",
} as const;

/** An `authorization` field with a token as the credential. */
export function bearer(token: string): Field {
  return ["authorization", `Bearer ${token}`];
}

/** The credential of most calls. */
export const authorized: Field = bearer(tokens.good);

/** Vouches for the {@link tokens}. */
export const testVerifier: TokenVerifier = {
  verify: ({ text }) => {
    const principal = { kind: "principal", subject: "alice", issuer: undefined } as const;
    if (text === tokens.good) return { ...principal, scopes: "all" };
    if (text === tokens.narrow) return { ...principal, scopes: new Set(["plants:read"]) };
    if (text === tokens.expired) return { kind: "expired", reason: "it is past its time" };
    if (text === tokens.uncheckable) return { kind: "unavailable", reason: "nobody answers", retryAfterS: 7 };
    return { kind: "unknown", reason: "it is none of the test's" };
  },
};

/** A plant server in this process, on a free port. Dispose of it with `await using`. */
export interface TestPlantServer {
  readonly address: Address;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The options of a plant server, and the certificate with which it speaks TLS and nothing else. */
export interface TestPlantServerOptions extends Partial<PlantServerOptions> {
  readonly tls?: Certificate;
  /** Where it listens. Default 127.0.0.1. */
  readonly host?: string;
  /** The Unix socket to listen on, instead of a port. */
  readonly path?: string;
}

/** Starts a plant server that knows the {@link tokens}; its store is empty unless one is given. */
export async function startPlantServer({
  tls,
  host = "127.0.0.1",
  path,
  ...options
}: TestPlantServerOptions = {}): Promise<TestPlantServer> {
  const store: PlantStore = options.store ?? openMemoryStore();
  const server = createPlantServer({
    auth: testVerifier,
    httpEngine: isNodeEngine ? "node" : "own",
    ...options,
    store,
  });
  const place = path === undefined ? { host, port: 0 } : { path };
  const address = await server.listen({ ...place, ...(tls && { tls }) });
  return {
    address,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await store.close();
    },
  };
}
