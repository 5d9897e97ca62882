import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { create, equals, isMessage } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  createFieldSetter,
  type FieldValues,
  asFieldValues,
  loadField,
  printPath,
  type ReadNotes,
} from "../json/index.ts";
import { findProtoField } from "./field-path.ts";
import type { HttpPattern } from "./http-rule.ts";

/** What a rule needs to know about a body in addition to the message that is read from it. */
export interface BodyNotes {
  /** Returns empty notes for one body. */
  open(): ReadNotes;
  /**
   * Compares the notes with the message, once path and query are in it, and fills its update mask.
   *
   * @throws ConnectError `InvalidArgument` when body and path have different values
   */
  settle(notes: ReadNotes, message: Message): void;
}

/** Options of {@link createBodyNotes}. */
export interface BodyNotesOptions {
  /** Allows a body to repeat a field of the path with the same value. */
  readonly sameValueAsPath: boolean;
  /** Fills the update mask of a PATCH from the fields of its body, if the request has no mask. */
  readonly updateMaskFromBody: boolean;
}

/** Creates the notes of a rule; `undefined` when its bodies need none. */
export function createBodyNotes(
  input: DescMessage,
  pattern: HttpPattern,
  options: BodyNotesOptions,
): BodyNotes | undefined {
  const maskField = options.updateMaskFromBody ? findMaskField(input, pattern) : undefined;
  if (!options.sameValueAsPath && maskField === undefined) return undefined;
  return {
    open: () => ({ boundValues: options.sameValueAsPath ? [] : undefined, fieldPaths: maskField && [] }),
    settle({ boundValues = [], fieldPaths = [] }, message) {
      for (const value of boundValues) refuseOtherValue(value, message);
      if (maskField !== undefined) fillMask(maskField, message, fieldPaths);
    },
  };
}

type BoundValue = NonNullable<ReadNotes["boundValues"]>[number];

function refuseOtherValue({ path, message }: BoundValue, target: Message): void {
  const fields = path.filter((step) => typeof step === "object");
  const leaf = fields.at(-1);
  if (leaf === undefined) return;
  let parent: FieldValues = target;
  for (const field of fields.slice(0, -1)) parent = asFieldValues(loadField(parent, field));
  const fromPath = loadField(parent, leaf);
  // Number.isNaN, because a NaN equals nothing.
  if (Number.isNaN(fromPath) && Number.isNaN(loadField(asFieldValues(message), leaf))) return;
  const wanted = create(leaf.parent);
  createFieldSetter(leaf)(wanted, fromPath);
  if (equals(leaf.parent, message, wanted)) return;
  throw new ConnectError(`${printPath(path)}: is not the value in the path`, Code.InvalidArgument);
}

// The field that grpc-gateway fills: the only FieldMask in the request of a PATCH whose body is a message field.
function findMaskField(input: DescMessage, { httpMethod, body }: HttpPattern): DescField | undefined {
  const bodyField = findProtoField(input, body);
  if (httpMethod !== "PATCH" || bodyField?.fieldKind !== "message") return undefined;
  const [mask, other] = input.fields.filter((field) => field.message?.typeName === FieldMaskSchema.typeName);
  return other === undefined && mask?.fieldKind === "message" && mask.oneof === undefined ? mask : undefined;
}

function fillMask(maskField: DescField, message: Message, fieldPaths: readonly string[]): void {
  const sent = loadField(message, maskField);
  if (fieldPaths.length === 0 || (isMessage(sent, FieldMaskSchema) && sent.paths.length > 0)) return;
  // The mask is about the resource, so its paths lack the name of the body's field.
  const paths = fieldPaths.map((path) => path.slice(path.indexOf(".") + 1)).toSorted();
  createFieldSetter(maskField)(message, create(FieldMaskSchema, { paths }));
}
