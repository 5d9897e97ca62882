import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { RestOptions } from "../../../../../../gateway/src/index.ts";

/** One version of a test case's definition, with the parts that differ from {@link defaults}. */
export interface Version {
  readonly syntax?: string;
  /** Service options, and other RPCs. */
  readonly methods?: string;
  /** The RPC's signature, or `""` for none. */
  readonly rpc?: string;
  /** The `google.api.http` rule, or `""` for none. */
  readonly http?: string;
  /** Other RPC options. */
  readonly options?: string;
  readonly req?: string;
  readonly res?: string;
  readonly types?: string;
}

/** A change to a definition, with a recorded request that shows its effect. */
export interface ComparisonCase {
  readonly name: string;
  /** The reports, as `SEVERITY RULE SUBJECT`, whose subjects omit the package. Empty if no client is affected. */
  readonly reports: readonly string[];
  readonly old: Version;
  readonly now: Version;
  /**
   * The recorded request. For REST, a method and a target; for Connect, an RPC and its form, such as `Call json`. The
   * form is `json`, `binary`, `get` or `stream` (the message twice). Defaults to `POST /call`.
   */
  readonly request?: string;
  readonly body?: JsonValue;
  /** The message with which the server responds, as JSON in the old definition. */
  readonly response?: JsonObject;
  readonly rest?: RestOptions;
}

// oxfmt-ignore
const defaults: Required<Version> = { syntax: 'syntax = "proto3";', methods: "", rpc: "rpc Call(Req) returns (Res)",
  http: 'post: "/call" body: "*"', options: "", req: "string id = 1;", res: "string id = 1;", types: "" };

/** Returns a version's .proto file. @param packageName - the test case's package */
export function toProto(version: Version, packageName: string): string {
  const { syntax, methods, rpc, http, options, req, res, types } = { ...defaults, ...version };
  const rule = http === "" ? "" : `option (google.api.http) = { ${http} };`;
  const call = rpc === "" ? "" : `${rpc} {\n    ${rule}\n    ${options}\n  }`;
  return `${syntax}
package ${packageName};
import "buf/validate/validate.proto";
import "google/api/annotations.proto";
import "google/api/httpbody.proto";
import "google/api/visibility.proto";
import "google/protobuf/duration.proto"; import "google/protobuf/empty.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

service S {
  ${call}
  ${methods}
}
message Req {
  ${req}
}
message Res {
  ${res}
}
${types}
`;
}
