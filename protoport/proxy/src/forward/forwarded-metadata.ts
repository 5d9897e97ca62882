import { type Caller, LazyHeaders, type ProtocolName } from "@protoport/gateway/forward";
import type { HeaderFields } from "@protoport/gateway/exchange";
import type { RequestFields } from "../client/index.ts";
import { type AddedFields, type ForwardedFields, noAddedFields } from "./forward-rules.ts";

/** Whether callers' credentials are forwarded. A credential for an MCP server must not be passed on. */
const forwardsCredential: Readonly<Record<ProtocolName, boolean>> = {
  connect: true,
  grpc: true,
  "grpc-web": true,
  mcp: false,
  rest: true,
};

/** Returns the fields in a caller's header that are forwarded to the upstream. */
export function forwardHeader({ request, headers }: Caller, fields: ForwardedFields): RequestFields {
  const { requestHeader } = headers;
  const fieldList = requestHeader instanceof LazyHeaders ? requestHeader.fields : [...requestHeader].flat();
  const added = fields.added(request);
  const isHidden = !forwardsCredential[request.protocol] && !fields.forwardsMcpCredential;
  return fields.select(isHidden ? withoutCredential(fieldList) : fieldList, added);
}

/** Drops the field `authorization` by its received name, so that no rule can rename the credential. */
function withoutCredential(fields: HeaderFields): HeaderFields {
  return fields.filter((_, at) => fields[at - (at % 2)]?.toLowerCase() !== "authorization");
}

/** Forwards an upstream response's header and trailer to the caller. */
export class ResponseMetadata {
  readonly #caller: Caller;
  readonly #fields: ForwardedFields;
  /** Computed before the call is sent, so that an error in `set` is not reported as an upstream error. */
  readonly #added: AddedFields;

  constructor(caller: Caller, fields: ForwardedFields) {
    this.#caller = caller;
    this.#fields = fields;
    this.#added = fields.added(caller.request);
  }

  /** Forwards the header section. A trailers-only response has no header section. */
  header(fields: HeaderFields): void {
    append(this.#caller.headers.responseHeader, this.#fields.select(fields, this.#added).fields);
    this.#caller.begin();
  }

  trailer(fields: HeaderFields): void {
    append(this.#caller.headers.responseTrailer, this.#fields.select(fields, noAddedFields).fields);
  }
}

function append(headers: Headers, fields: HeaderFields): void {
  for (let at = 0; at < fields.length; at += 2) headers.append(fields[at] ?? "", fields[at + 1] ?? "");
}
