import { createContextKey, type ContextKey } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/**
 * The context key for a call's principal. The principal is `undefined` if the call needs no credential, or was refused
 * before its token was verified.
 */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined);
