import { createContextKey, type ContextKey, type ContextValues } from "@connectrpc/connect";

import type { Principal } from "./token-verifier.ts";

/** Where the principal of a request is kept between `admit`, the interceptor and the handler; the key never leaves this room. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined, {
  description: "principal",
});

/** Returns who asks, or `undefined` for a request that needed no credential or was refused before one was accepted. */
export function principalOf(contextValues: ContextValues): Principal | undefined {
  return contextValues.get(principalKey);
}

/** Returns the id text of who asks; empty for a request that needed no credential. */
export function subjectOf(contextValues: ContextValues): string {
  return contextValues.get(principalKey)?.subject ?? "";
}
