import type { DescService } from "@bufbuild/protobuf";
import { messageOf } from "@protoport/gateway/errors";
import { filesOf } from "@protoport/gateway/descriptors";
import type { RestOptions } from "@protoport/gateway/rest";
import {
  compareServices,
  loadRules,
  withoutRules,
  partitionAccepted,
  type PartitionedChanges,
} from "../compare/index.ts";
import { InputError } from "./input-error.ts";
import { readText } from "./read-input.ts";

/** Maximum size of the file with accepted changes. 1 MiB holds ten thousand changes. */
const acceptedMaxBytes = 1024 * 1024;

/** A comparison's options. */
export interface ComparisonOptions {
  readonly rest: RestOptions;
  /** Whether elements that visibility rules hide were removed from both versions. */
  readonly isRestricted: boolean;
  /** The file with accepted changes. */
  readonly accept: string | undefined;
  /** The folder that contains the definition's files, for reports. */
  readonly sourceRoot: string;
  /** Called with a warning if some rules are not compared. */
  readonly warn: (text: string) => void;
}

/** Compares services with an older definition. @param name - the definition's name, for messages @throws InputError */
export async function compareWith(
  before: readonly DescService[],
  now: readonly DescService[],
  name: string,
  { rest, isRestricted, accept, sourceRoot, warn }: ComparisonOptions,
): Promise<PartitionedChanges> {
  const text = accept === undefined ? "" : await readText(accept, acceptedMaxBytes);
  const openRules = await loadRules().catch(() => {
    if (haveRules([...before, ...now]))
      warn("buf.validate rules are not compared: install the package @bufbuild/protovalidate to compare them");
    return withoutRules;
  });
  const root = sourceRoot === "" ? "" : `${sourceRoot.replace(/\/+$/, "")}/`;
  try {
    // Missing elements matter only if `isRestricted`. Otherwise they are removed, which `buf breaking` reports.
    const ignored = isRestricted ? "visibility-narrowed" : "element-hidden";
    const changes = compareServices(before, now, rest, openRules).filter(({ rule }) => rule !== ignored);
    return partitionAccepted(
      changes.map((change) => ({ ...change, file: `${root}${change.file}` })),
      text,
    );
  } catch (error) {
    throw new InputError(`cannot compare with ${name}: ${messageOf(error)}`);
  }
}

/** Returns whether the files of services import the `buf.validate` options. */
function haveRules(services: readonly DescService[]): boolean {
  return [...filesOf(services)].some(({ proto }) => proto.name === "buf/validate/validate.proto");
}
