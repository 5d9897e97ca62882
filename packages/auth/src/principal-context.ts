import { createContextKey, type ContextKey } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/** The context key for a call's principal, `undefined` for a call without a credential or with a refused one. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined);
