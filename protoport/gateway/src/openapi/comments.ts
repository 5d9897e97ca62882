import type { DescEnum, DescField, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { fromBinary, isMessage } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { runSteps } from "../http/index.ts";
import { filesOf } from "../protobuf/index.ts";
import { openApiOptionsOf } from "./openapi-options.ts";

/** A definition's comments by full name, such as `pkg.Message.field`, `pkg.Enum.VALUE` or `pkg.Service.Method`. */
export type Comments = ReadonlyMap<string, string>;

/**
 * Reads the comments from a FileDescriptorSet with source info, which is the output of `buf build -o definition.binpb`
 * or `protoc --include_source_info --descriptor_set_out`. Descriptors in generated code have no comments.
 *
 * @throws Error if the bytes are not a FileDescriptorSet
 */
export function readComments(fileDescriptorSet: Uint8Array): Comments {
  return runSteps(commentsIn(fromBinary(FileDescriptorSetSchema, fileDescriptorSet).file));
}

/** Returns the comments in the files that declare the services, and in their imports. Yields once per comment. */
export function* commentsOf(services: readonly DescService[]): Generator<void, Comments> {
  return yield* commentsIn([...filesOf(services)].map(({ proto }) => proto));
}

function* commentsIn(files: readonly FileDescriptorProto[]): Generator<void, Comments> {
  const comments = new Map<string, string>();
  for (const file of files) {
    for (const { path, leadingComments, trailingComments } of file.sourceCodeInfo?.location ?? []) {
      const name = nameAt(file, path);
      const text = trimComment(leadingComments) || trimComment(trailingComments);
      if (name !== undefined && text !== "") comments.set(name, text);
      yield;
    }
  }
  return comments;
}

/** Maximum characters in a comment. Longer comments are truncated after 20,000 characters, about ten pages. */
const maxComment = 20_000;

/** A descriptor that may have a comment. */
export type Commented = DescMessage | DescField | DescEnum | DescEnum["values"][number] | DescService | DescMethod;

/**
 * Returns the description in a descriptor's `openapiv2_*` option, or else the descriptor's comment, if any. For an RPC,
 * returns the comment, because an RPC's option also has a summary.
 */
export function commentOf(comments: Pick<Comments, "get">, desc: Commented): string | undefined {
  if (desc.kind !== "rpc" && desc.kind !== "enum_value") {
    const description = trimComment(openApiOptionsOf(desc).description ?? "");
    if (description !== "") return description;
  }
  return comments.get("typeName" in desc ? desc.typeName : `${desc.parent.typeName}.${desc.name}`);
}

// Returns the full name of the descriptor at a SourceCodeInfo path, if it has one. A path alternates field numbers and
// list indexes, from the file down to a descriptor (descriptor.proto).
function nameAt(file: FileDescriptorProto, path: readonly number[]): string | undefined {
  const names = file.package === "" ? [] : [file.package];
  let desc: DescMessage = FileDescriptorProtoSchema;
  let value: Readonly<Record<string, unknown>> = file;
  for (let at = 0; at < path.length; at += 2) {
    const field = desc.fields.find(({ number }) => number === path[at]);
    const list = field?.fieldKind === "list" && field.message !== undefined ? value[field.localName] : undefined;
    const index = path[at + 1];
    const item: unknown = Array.isArray(list) && index !== undefined ? list[index] : undefined;
    if (field?.message === undefined || !isMessage(item) || !("name" in item)) return undefined;
    names.push(String(item.name));
    [desc, value] = [field.message, item];
  }
  return names.join(".");
}

/** Removes the space that comments usually have after `//`, and truncates a text to {@link maxComment} characters. */
export function trimComment(text: string): string {
  const kept = text.length > maxComment ? `${text.slice(0, maxComment)}… (cut off)` : text;
  return kept
    .split(/\r?\n/)
    .map((line) => line.replace(/^ /, "").trimEnd())
    .join("\n")
    .trim();
}

/**
 * Removes control and invisible characters from a string that models read, and truncates the string to `maxLength`
 * characters. Invisible characters can hide instructions from the people who review a tool. The returned text is still
 * untrusted.
 */
export function cleanText(text: string, maxLength: number): string {
  const clean = text.toWellFormed().replaceAll(invisible, "");
  return clean.length > maxLength ? `${clean.slice(0, maxLength).toWellFormed()}…` : clean;
}

// Matches control characters except tabs and line feeds. Also matches format characters, such as direction changes and
// Unicode tags, private and unassigned characters, and variation selectors.
const invisible = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u{FE00}-\u{FE0F}\u{E0100}-\u{E01EF}]/gu;
