import type { TokenVerifier } from "@protoport/auth";
import { openMemoryStore } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/index.ts";
import { assemblePlantServer } from "../../../src/server/create-plant-server.ts";
import type { PlantServerOptions } from "../../../src/server/index.ts";
import type { Certificate } from "../../../protoport/testing/src/http/certificate.ts";
import type { Address, Field } from "../../../protoport/testing/src/http/exchange.ts";
import { createTestGateway } from "../../../protoport/testing/src/gateway/test-gateway.ts";

/** The tokens that servers under test know. */
export const tokens = {
  /** Has all scopes. */
  good: "good-token-0123456789",
  /** Has expired. */
  expired: "expired-token-0123456789",
  /** Belongs to a caller without any RPC's scope. */
  narrow: "narrow-token-0123456789",
  /** Was issued by a provider that is unavailable. */
  uncheckable: "uncheckable-token-0123456789",
  /** Is unknown. */
  unknown: "unknown-token-0123456789",
} as const;

/** Returns an `authorization` field with a token. */
export const bearer = (token: string): Field => ["authorization", `Bearer ${token}`];
/** The credential that most calls send. */
export const authorized: Field = bearer(tokens.good);

/** Verifies the {@link tokens}. */
export const testVerifier: TokenVerifier = {
  verify: ({ text }) => {
    const principal = { kind: "principal", subject: "alice", issuer: undefined } as const;
    if (text === tokens.good) return { ...principal, scopes: "all" };
    if (text === tokens.narrow) return { ...principal, scopes: new Set(["another:scope"]) };
    if (text === tokens.expired) return { kind: "expired", reason: "it has expired" };
    if (text === tokens.uncheckable)
      return { kind: "unavailable", reason: "the provider does not respond", retryAfterS: 7 };
    return { kind: "unknown", reason: "it is not a token of the tests" };
  },
};

/** A plant server in this process, on a free port. Dispose it with `await using`. */
export type TestPlantServer = { readonly address: Address; [Symbol.asyncDispose](): Promise<void> };

/** A plant server's options, with the certificate for TLS. */
export interface TestPlantServerOptions extends Partial<PlantServerOptions> {
  readonly tls?: Certificate;
  /** The host on which it listens. Defaults to 127.0.0.1. */
  readonly host?: string;
  /** The Unix socket to listen on, instead of a port. */
  readonly path?: string;
}

/** Starts a plant server that accepts the {@link tokens}. Its store is empty by default. */
export async function startPlantServer({
  tls,
  host = "127.0.0.1",
  path,
  ...options
}: TestPlantServerOptions = {}): Promise<TestPlantServer> {
  const store: PlantStore = options.store ?? openMemoryStore();
  const server = assemblePlantServer({ verifier: testVerifier, ...options, store }, createTestGateway);
  const listenOptions = path === undefined ? { host, port: 0 } : { path };
  const address = await server.listen({ ...listenOptions, ...(tls && { tls }) });
  return {
    address,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      await store.close();
    },
  };
}
