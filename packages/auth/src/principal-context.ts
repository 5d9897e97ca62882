import { createContextKey, type ContextKey } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/**
 * The key of the principal among a call's context values; `undefined` when the call needed no credential, or was
 * refused before one was accepted.
 */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined);
