import { type Flag, type ParsedFlags, readFlag } from "@protoport/command-line";
import { oneOf, type SettingType } from "@protoport/command-line/settings";
import type { OperationIds } from "@protoport/gateway/openapi";

/** The flag for the names in operation ids. */
export const operationIdsFlag: Flag = {
  value: "NAMES",
  about: "the names in operation ids: service (with the version, the default), rpc, or full (with the package)",
};

/** The type of the names in operation ids. */
export const operationIdsType: SettingType<OperationIds> = oneOf(["service", "rpc", "full"]);

/** Returns the option that {@link operationIdsFlag} sets. @throws UsageError for unknown names */
export function operationIdsOf(flags: ParsedFlags): { readonly operationIds?: OperationIds } {
  const operationIds = readFlag(flags, "operation-ids", operationIdsType);
  return operationIds === undefined ? {} : { operationIds };
}
