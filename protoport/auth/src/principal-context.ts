import { createContextKey, type ContextKey } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/** The context key for a call's principal. `undefined` if the call is open, or refused before verification. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined);
