import type { ContextValues } from "@connectrpc/connect";

import { principalOf } from "./principal-context.ts";
import { refusalOf, type RefusalKind } from "./refusal.ts";

/** What an audit line says of who asked, and of why it was refused. Members that say nothing are left out. */
export interface AuditFields {
  /** JWT `sub`, or the name of the token. */
  readonly subject?: string;
  /** JWT `iss`; left out for tokens of our own. */
  readonly issuer?: string;
  /** What was wrong with the credential. */
  readonly refusal?: RefusalKind;
  /** Why, in the words of the verifier; for operators only, and never the token. */
  readonly reason?: string;
}

/**
 * Returns what an audit line says of the credential of an answered request.
 *
 * @param error - what the request was answered with instead of a message, if it was
 */
export function auditFieldsOf(contextValues: ContextValues, error: unknown): AuditFields {
  const principal = principalOf(contextValues);
  const refusal = refusalOf(error);
  return {
    ...(principal !== undefined && { subject: principal.subject }),
    ...(principal?.issuer !== undefined && { issuer: principal.issuer }),
    ...(refusal !== undefined && { refusal: refusal.kind, reason: refusal.reason }),
  };
}
