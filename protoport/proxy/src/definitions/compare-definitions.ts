import { messageOf } from "@protoport/gateway/errors";
import { filesOf } from "@protoport/gateway/descriptors";
import type { OperationIds } from "@protoport/gateway/openapi";
import { type OptionNames, refuseUnknownOptions } from "@protoport/gateway/options";
import { type RestOptions, withoutRpcs } from "@protoport/gateway/rest";
import {
  compareServices,
  loadRules,
  partitionAccepted,
  type PartitionedChanges,
  withoutRules,
} from "./compare/index.ts";
import type { Definition } from "./definition.ts";
import { InputError } from "./read-input.ts";

/** Options for {@link compareDefinitions}. */
export interface ComparisonOptions {
  /** The option `rest` of the gateway that serves both versions. */
  readonly rest?: RestOptions;
  /** The option `operationIds` of `createOpenApi`. */
  readonly operationIds?: OperationIds;
  /** The accepted changes, as `RULE SUBJECT` per line, with comments after `#`. */
  readonly accepted?: string;
  /** The folder that contains the definition's files, for the paths of changes. */
  readonly sourceRoot?: string;
  /** Called with a warning if `buf.validate` rules are not compared, because `@bufbuild/protovalidate` is missing. */
  readonly onWarning?: (text: string) => void;
}

const comparisonOptionNames: OptionNames<ComparisonOptions> = {
  rest: true,
  operationIds: true,
  accepted: true,
  sourceRoot: true,
  onWarning: true,
};

/**
 * Finds the changes of routes, bodies, `buf.validate` rules and visibility that break clients of an older version. `buf
 * breaking` finds the other changes.
 *
 * @throws InputError if the versions have no package in common, or the HTTP rules are not valid; TypeError for unknown
 * options
 */
export async function compareDefinitions(
  before: Definition,
  now: Definition,
  options: ComparisonOptions = {},
): Promise<PartitionedChanges> {
  refuseUnknownOptions(options, comparisonOptionNames, "compareDefinitions");
  const { rest = {}, operationIds, accepted = "", sourceRoot = "", onWarning } = options;
  const openRules = await loadRules().catch(() => {
    if (haveRules(before) || haveRules(now))
      onWarning?.("buf.validate rules are not compared: install the package @bufbuild/protovalidate to compare them");
    return withoutRules;
  });
  const root = sourceRoot === "" ? "" : `${sourceRoot.replace(/\/+$/, "")}/`;
  try {
    // Missing elements matter only if visibility removed them. Otherwise `buf breaking` reports them.
    const ignored = now.isRestricted ? "visibility-narrowed" : "element-hidden";
    const given = { rest: withoutRpcs(rest, now.hiddenRpcs), operationIds };
    const changes = compareServices(before.services, now.services, given, openRules);
    return partitionAccepted(
      changes.filter(({ rule }) => rule !== ignored).map((change) => ({ ...change, file: `${root}${change.file}` })),
      accepted,
    );
  } catch (error) {
    throw new InputError(`cannot compare with ${before.name}: ${messageOf(error)}`);
  }
}

/** Returns whether a definition's files import the `buf.validate` options. */
function haveRules({ services }: Definition): boolean {
  return [...filesOf(services)].some(({ proto }) => proto.name === "buf/validate/validate.proto");
}
