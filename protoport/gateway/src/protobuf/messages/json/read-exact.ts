import type { DescField, DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { create, isMessage } from "@bufbuild/protobuf";
import { type NamedOption } from "../../../http/index.ts";
import { problem } from "../../errors/index.ts";
import { FieldProblem, type PathStep, printPath } from "./field-problem.ts";
import { createFieldReader } from "./field-reader.ts";
import { refuseOtherMember } from "./field-values.ts";
import { JsonScanner } from "./json-scanner.ts";
import { messageReaders } from "./message-reader.ts";
import type { BoundFields, FieldReader, ReadContext } from "./read-context.ts";
import type { ReadServiceJsonOptions } from "./read-options.ts";
import { UnknownNames } from "./unknown-names.ts";

/** Rules for reading one JSON text, in addition to the options. */
export type TextRules = Pick<ReadContext, "sameAsBound" | "notes">;

/** Reads a JSON text with the exact reader. @throws ConnectError `InvalidArgument` whose message names the field */
export function readExactText<Value>(
  text: string,
  options: ReadServiceJsonOptions,
  rules: TextRules,
  readExactly: (context: ReadContext) => Value,
): { readonly message: Value; readonly ignored: UnknownNames } {
  const { unknownOption = "rest.json.unknownFields" } = options;
  const rejectUnknown = options.unknownFields !== "ignore";
  const unknown = new UnknownNames();
  const path: PathStep[] = [];
  try {
    const context: ReadContext = {
      ...rules,
      scanner: new JsonScanner(text),
      rejectUnknown,
      unknownOption,
      canonicalIntegers: options.canonicalIntegers === true,
      registry: options.registry,
      unknown,
      path,
      messages: messageReaders,
      anyDepth: 0,
      typeUrls: undefined,
    };
    const message = readExactly(context);
    context.scanner.finish();
    if (rejectUnknown && unknown.count > 0) throw new FieldProblem(unknown.describe("field"), unknownOption);
    return { message, ignored: unknown };
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    const location = path.length === 0 ? "" : `${printPath(path)}: `;
    throw invalidMessageError(location + error.message, error.option);
  }
}

/** Reads a field. @param below - the inner fields that the URL path sets, or `"whole"` for the complete field */
export function readExactField(
  reader: FieldReader,
  below: BoundFields | "whole" | undefined,
  context: ReadContext,
  message: Message,
): void {
  context.path.push(reader.field);
  if (!reader.nullIsValue && context.scanner.peek() === "null") context.scanner.readLiteral("null");
  else {
    refuseOtherMember(message, reader.field);
    reader.read(context, message, below === "whole" ? undefined : below);
  }
  context.path.pop();
}

/**
 * Reads a message, or one field if the complete text is the field's value. Required fields may be missing. Generates
 * no code, and does not check whether code may be generated, because a Content-Security-Policy would report the check.
 *
 * @throws ConnectError `InvalidArgument` whose message names the field
 */
export function readJsonExactly<Desc extends DescMessage>(
  desc: Desc,
  field: DescField | undefined,
  json: Uint8Array | string,
  options: ReadServiceJsonOptions,
): MessageShape<Desc> {
  const read = (context: ReadContext): MessageShape<Desc> => {
    const whole = field === undefined ? messageReaders.readerOf(desc)(context) : undefined;
    if (isMessage(whole, desc)) return whole;
    if (field === undefined) throw new TypeError(`the reader of ${desc.typeName} returned another type`);
    const message = create(desc);
    readExactField(createFieldReader(field), undefined, context, message);
    return message;
  };
  return readExactText(toText(json), options, noRules, read).message;
}

const noRules: TextRules = { sameAsBound: false, notes: undefined };

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** node's Buffer, if it exists. Buffer decodes characters such as "ü" in half the time of a TextDecoder. */
const NodeBuffer: typeof Buffer | undefined = globalThis.Buffer;

/** Decodes JSON. @throws ConnectError `InvalidArgument` for bytes that are not UTF-8, and for lone surrogates */
export function toText(json: Uint8Array | string): string {
  if (typeof json === "string") {
    if (json.isWellFormed()) return json;
    throw invalidMessageError("not valid JSON: lone surrogate in the text");
  }
  try {
    if (NodeBuffer !== undefined && json instanceof NodeBuffer) {
      const text = json.toString();
      // Buffer replaces invalid bytes with U+FFFD.
      if (!text.includes("\ufffd")) return text;
    }
    return utf8.decode(json);
  } catch {
    throw invalidMessageError("not valid JSON: the bytes are not UTF-8");
  }
}

function invalidMessageError(message: string, option?: NamedOption): Error {
  return problem("ERR_MESSAGE_INVALID", message, { option });
}
