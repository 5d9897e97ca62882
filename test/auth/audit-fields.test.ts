import { ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";

import { auditFieldsOf } from "../../src/auth/audit-fields.ts";
import { principalKey } from "../../src/auth/principal-context.ts";
import { createRefusals } from "../../src/auth/refusal.ts";

const refusals = createRefusals("plantstore", undefined);
const ada = { kind: "principal", subject: "ada", issuer: "https://id.example", scopes: "all" } as const;
const ci = { kind: "principal", subject: "ci", issuer: undefined, scopes: "all" } as const;

describe("auditFieldsOf", () => {
  test.each([
    {
      name: "who asked, by issuer and subject",
      principal: ada,
      error: undefined,
      want: { subject: "ada", issuer: "https://id.example" },
    },
    { name: "who asked, by the name of a token of ours", principal: ci, error: undefined, want: { subject: "ci" } },
    {
      name: "who asked, of a call that failed for another reason",
      principal: ci,
      error: new ConnectError("plant 7 not found"),
      want: { subject: "ci" },
    },
    { name: "nothing of an open call", principal: undefined, error: undefined, want: {} },
    {
      name: "that there was no credential",
      principal: undefined,
      error: refusals.credential("missing"),
      want: { refusal: "missing", reason: "no bearer token" },
    },
    {
      name: "why a token was refused, which the client is not told",
      principal: undefined,
      error: refusals.token({ kind: "invalid", reason: "signature verification failed" }),
      want: { refusal: "invalid", reason: "signature verification failed" },
    },
    {
      name: "who lacked the scope",
      principal: ci,
      error: refusals.scope("plants:delete"),
      want: { subject: "ci", refusal: "insufficient-scope", reason: "the token lacks the scope plants:delete" },
    },
  ])("says $name", ({ principal, error, want }) => {
    const contextValues = createContextValues().set(principalKey, principal);
    expect(auditFieldsOf(contextValues, error)).toEqual(want);
  });
});
