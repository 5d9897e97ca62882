import type { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { authorized, bearer, tokens } from "../support/server/plant-server.ts";
import { situations as ids, takenKey } from "../support/plants/situation-store.ts";
import { type Field, type HttpRequest, rpcRequest, type WireFormat } from "@protoport/testing";
import { deletePlantProcedure, deletePlantRequest, encodeDeletePlant } from "../support/plants/delete-plant.ts";
import type { Want } from "./expected-response.ts";

/** A contract test case: what a client sends, and the outcome over every protocol. */
export interface Situation {
  /** Completes the sentence "the server …". */
  readonly name: string;
  /** Returns the request. `plant` is an existing plant's id that no other test case uses. */
  readonly request: (format: WireFormat, plant: bigint) => HttpRequest;
  readonly want: Want;
  /** The formats in which the situation is possible; all by default. */
  readonly formats?: readonly WireFormat["name"][];
}

/** An id that no test store has. */
const absent = 424_242n;

const challenge = 'Bearer realm="plantstore"';
const malformed = "the Authorization header must contain a single bearer token";
const malformedWant: Want = {
  code: "unauthenticated",
  message: malformed,
  errorCode: "ERR_CREDENTIAL_MALFORMED",
  fields: { "www-authenticate": `${challenge}, error="invalid_request", error_description="${malformed}"` },
};
const invalidWant: Want = {
  code: "unauthenticated",
  message: "the token is not valid",
  errorCode: "ERR_TOKEN_INVALID",
  fields: { "www-authenticate": `${challenge}, error="invalid_token", error_description="the token is not valid"` },
};
function scopeMissing(scope: string): Want {
  const message = `the token lacks the scope ${scope}`;
  return {
    code: "permission_denied",
    message,
    errorCode: "ERR_SCOPE_INSUFFICIENT",
    fields: {
      "www-authenticate": `${challenge}, error="insufficient_scope", error_description="${message}", scope="${scope}"`,
    },
  };
}
const handlerFailed: Want = { code: "internal", message: "internal error", errorCode: "ERR_HANDLER_FAILED" };
const storeAway: Want = {
  code: "unavailable",
  message: "the plant store cannot process the request at the moment",
  errorCode: "ERR_STORE_UNAVAILABLE",
  fields: { "retry-after": "1" },
};
const deadlineExceeded: Want = {
  code: "deadline_exceeded",
  message: "the operation timed out",
  errorCode: "ERR_DEADLINE_EXCEEDED",
};
const keyReusedWant: Want = {
  code: "already_exists",
  message: "the idempotency key belongs to another deletion",
  errorCode: "ERR_IDEMPOTENCY_KEY_REUSED",
};
const keyMalformedWant: Want = {
  code: "invalid_argument",
  message: "the Idempotency-Key header must be a string of 1 to 128 characters in double quotes",
  errorCode: "ERR_IDEMPOTENCY_KEY_INVALID",
};
/** The outcome without a credential, even if the request has other errors. */
export const credentialMissing: Want = {
  code: "unauthenticated",
  message: "a bearer token is required",
  errorCode: "ERR_CREDENTIAL_MISSING",
  fields: { "www-authenticate": challenge },
};
// oxfmt-ignore
const rpcFormats = [
  "connect-json", "connect-proto", "grpc", "grpc-json", "grpc-web", "grpc-web-json", "grpc-web-text", "mcp",
] as const;
const jsonFormats = ["connect-json", "grpc-json", "grpc-web-json", "mcp"] as const;

/** A DeletePlant call that is possible in every format. */
interface DeleteSituation {
  readonly name: string;
  /** Defaults to the test case's plant. */
  readonly id?: bigint;
  /** By default, only a valid credential. */
  readonly header?: readonly Field[];
  readonly want: Want;
}

function toSituation({ name, id, header = [authorized], want }: DeleteSituation): Situation {
  return { name, want, request: (format, plant) => deletePlantRequest(format, id ?? plant, header) };
}

const takenKeyField: Field = ["idempotency-key", `"${takenKey}"`];

// oxfmt-ignore
const credentialSituations: readonly DeleteSituation[] = [
  { name: "accepts the scheme of the credential in any case", header: [["authorization", `bEARER ${tokens.good}`]],
    want: { code: "ok" } },
  { name: "refuses a call without a credential", header: [], want: credentialMissing },
  { name: "refuses a call without a credential for a plant that does not exist", id: absent, header: [],
    want: credentialMissing },
  { name: "treats an empty credential as a missing one", header: [["authorization", ""]], want: credentialMissing },
  { name: "treats another scheme as a missing credential", header: [["authorization", "Basic dTpw"]],
    want: credentialMissing },
  { name: "refuses a scheme without a token", header: [["authorization", "Bearer"]], want: malformedWant },
  { name: "refuses a token with a space in it", header: [["authorization", `Bearer ${tokens.good} x`]],
    want: malformedWant },
  { name: "refuses two tokens in one field",
    header: [["authorization", `Bearer ${tokens.good}, Bearer ${tokens.good}`]], want: malformedWant },
  { name: "refuses a valid token that is sent twice", header: [authorized, authorized], want: malformedWant },
  { name: "refuses a valid token followed by an invalid one", header: [authorized, bearer(tokens.unknown)],
    want: malformedWant },
  { name: "refuses an unknown token", header: [bearer(tokens.unknown)], want: invalidWant },
  { name: "refuses a token with a wrong checksum like an unknown one", header: [bearer(`plantstore_${"0".repeat(57)}`)],
    want: invalidWant },
  { name: "refuses an expired token", header: [bearer(tokens.expired)], want: {
      code: "unauthenticated", message: "the token has expired", errorCode: "ERR_TOKEN_EXPIRED",
      fields: { "www-authenticate": `${challenge}, error="invalid_token", error_description="the token has expired"` },
    } },
  { name: "refuses a token without the scope", header: [bearer(tokens.narrow)], want: scopeMissing("plants:delete") },
  { name: "responds UNAVAILABLE when the token cannot be verified", header: [bearer(tokens.uncheckable)], want: {
      code: "unavailable", message: "the token cannot be verified right now", errorCode: "ERR_VERIFICATION_UNAVAILABLE",
      fields: { "retry-after": "7" } } },
];

// oxfmt-ignore
const storeSituations: readonly DeleteSituation[] = [
  { name: "deletes the plant", want: { code: "ok" } },
  { name: "responds NOT_FOUND when the plant does not exist", id: absent,
    want: { code: "not_found", message: `plant ${String(absent)} not found`, errorCode: "ERR_PLANT_NOT_FOUND" } },
  { name: "hides the cause of an internal error", id: ids.fault, want: handlerFailed },
  { name: "sends Retry-After while the store is unavailable", id: ids.away, want: storeAway },
  { name: "responds FAILED_PRECONDITION when the database protects the plant", id: ids.kept,
    want: { code: "failed_precondition", message: "the database does not allow deleting plant -409",
      errorCode: "ERR_PLANT_PROTECTED" } },
  { name: "sends Retry-After while the queue is full", id: ids.full,
    want: { code: "resource_exhausted", message: "too many deletions are queued", errorCode: "ERR_QUEUE_FULL",
      fields: { "retry-after": "1" } } },
];

// oxfmt-ignore
const keySituations: readonly DeleteSituation[] = [
  { name: "refuses an idempotency key that belongs to another plant", header: [authorized, takenKeyField],
    want: keyReusedWant },
  { name: "refuses an idempotency key that belongs to another subject", id: ids.keyTaken,
    header: [authorized, takenKeyField], want: keyReusedWant },
  { name: "refuses an idempotency key without quotes", header: [authorized, ["idempotency-key", takenKey]],
    want: keyMalformedWant },
  { name: "refuses two idempotency keys, even if they are equal",
    header: [authorized, ["idempotency-key", '"a"'], ["idempotency-key", '"a"']], want: keyMalformedWant },
];

/** Each RPC's situations, which docs/reference/errors.md explains. An RPC without any does not compile. */
export const situations: { readonly [Rpc in keyof typeof PlantService.method]: readonly Situation[] } = {
  // oxfmt-ignore
  deletePlant: [
    ...[...storeSituations, ...credentialSituations, ...keySituations].map(toSituation),
    { name: "responds DEADLINE_EXCEEDED at the client's deadline", request: (format) => {
        const deadline = format.timeout?.(20);
        return deletePlantRequest(format, ids.slow, deadline === undefined ? [authorized] : [authorized, deadline]);
      }, want: deadlineExceeded, formats: rpcFormats },
    { name: "refuses a message without an id",
      request: (format) => rpcRequest(format, encodeDeletePlant(format, undefined), [authorized], deletePlantProcedure),
      want: { code: "invalid_argument", message: "id is missing", errorCode: "ERR_PLANT_ID_MISSING" },
      formats: rpcFormats },
    { name: "refuses an id that is null",
      request: (format) => rpcRequest(format, Buffer.from('{"id":null}'), [authorized], deletePlantProcedure),
      want: { code: "invalid_argument", message: "id is missing", errorCode: "ERR_PLANT_ID_MISSING" },
      formats: jsonFormats },
  ],
};
