import { createContextKey, type ContextKey } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/**
 * Where the context values of a call hold its principal; `undefined` when the call needed no credential, or was refused
 * before one was accepted.
 */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined, {
  description: "principal",
});
