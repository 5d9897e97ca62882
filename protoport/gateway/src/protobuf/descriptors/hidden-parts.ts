import {
  clearExtension,
  clearField,
  create,
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescMessage,
  fromBinary,
  getExtension,
  isFieldSet,
  isMessage,
  type Message,
  setExtension,
  toBinary,
} from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { toShortLine } from "../../http/index.ts";
import { problem, withDetails } from "../call-errors.ts";
import { labelsOf, type VisibilityOptions } from "./hide-restricted.ts";
import type { DescribedServices } from "./read-descriptor-set.ts";

/** Maximum nesting depth of encoded messages, such as an Any's content or an extension. Deeper messages are removed. */
const maxEncodedDepth = 16;

const fullName = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/;

type Detail = ConnectError["details"][number];
type OutgoingDetail = Extract<Detail, { readonly desc: unknown }>;
type IncomingDetail = Exclude<Detail, OutgoingDetail>;

/** A definition's visible types, the names of types with hidden fields or values, and the hidden enum numbers. */
export type PartlyVisible = Pick<DescribedServices, "types" | "restricted" | "hiddenNumbers">;

/**
 * Removes hidden fields, extensions and enum numbers from messages. Empties a google.protobuf.Any with a hidden type.
 * Elements are hidden by `google.api.visibility` rules in the definition.
 */
export class HiddenParts {
  readonly #definitions: readonly PartlyVisible[];
  readonly #restricted: ReadonlySet<string>;
  readonly #hiddenNumbers: ReadonlySet<string>;
  readonly #recursionLimit: number | undefined;
  /** The visible extensions, by the extended message's name. */
  readonly #extensions: ReadonlyMap<string, readonly DescExtension[]>;

  /** The names of messages that may contain a hidden part at any depth. */
  readonly #partlyHidden: ReadonlySet<string>;
  /** The names of messages with hidden fields at any depth. */
  readonly #hidingFields: ReadonlySet<string>;

  /** Each message type's update mask. `"none"` if the type has no mask, or if the mask's target has no hidden part. */
  readonly #masks = new Map<DescMessage, UpdateMask | "none">();

  private constructor(definitions: readonly PartlyVisible[], recursionLimit: number | undefined) {
    this.#definitions = definitions;
    this.#restricted = new Set(definitions.flatMap(({ restricted }) => [...restricted]));
    this.#hiddenNumbers = new Set(definitions.flatMap(({ hiddenNumbers = [] }) => [...hiddenNumbers]));
    this.#recursionLimit = recursionLimit;
    const extensions = definitions.flatMap((definition) =>
      [...definition.types]
        .filter((type) => type.kind === "extension")
        .filter(({ extendee }) => (this.#ownerOf(extendee.typeName) ?? definition) === definition),
    );
    this.#extensions = Map.groupBy(extensions, ({ extendee }) => extendee.typeName);
    this.#partlyHidden = this.#usersOf(new Set([...this.#restricted, AnySchema.typeName]));
    const isEnum = (name: string): boolean => definitions.some(({ types }) => types.getEnum(name) !== undefined);
    this.#hidingFields = this.#usersOf(new Set([...this.#restricted].filter((name) => !isEnum(name))));
  }

  /** Creates the instance, or returns `undefined` if nothing is hidden. The first definition of a type applies. */
  static of(definitions: readonly PartlyVisible[], recursionLimit: number | undefined): HiddenParts | undefined {
    if (definitions.every(({ restricted }) => restricted.size === 0)) return undefined;
    return new HiddenParts(definitions, recursionLimit);
  }

  /** Returns whether messages with these types may contain a hidden part at any depth. */
  mayBeIn(messages: readonly DescMessage[]): boolean {
    return messages.some(({ typeName }) => this.#partlyHidden.has(typeName));
  }

  /** Returns the given type names, and the names of all messages that contain one of these types at any depth. */
  #usersOf(used: ReadonlySet<string>): ReadonlySet<string> {
    const messages = this.#definitions.flatMap(({ types }) => [...types].filter((type) => type.kind === "message"));
    const uses = [
      ...messages.flatMap(({ typeName, fields }) => fields.map((field) => [typeName, field] as const)),
      ...[...this.#extensions].flatMap(([typeName, all]) => all.map((extension) => [typeName, extension] as const)),
    ];
    const users = Map.groupBy(uses, ([, { message, enum: desc }]) => (message ?? desc)?.typeName);
    const found = new Set(used);
    for (const name of found) for (const [user] of users.get(name) ?? []) found.add(user);
    return found;
  }

  /** Removes hidden content and unknown fields from a message. */
  removeFrom(desc: DescMessage, message: Message): void {
    this.#clean(desc, message, { encodedDepth: 0, isRequest: false });
  }

  /**
   * Removes hidden content and unknown fields from a request.
   *
   * @throws ConnectError `InvalidArgument` if an update mask has a path that names no visible field, or a message whose
   * hidden fields an update could clear. The path is not simply removed, because an empty mask could mean all fields.
   */
  removeFromRequest(desc: DescMessage, message: Message): void {
    this.#clean(desc, message, { encodedDepth: 0, isRequest: true });
  }

  /**
   * Returns an error without details that have a hidden type, and without hidden content in the other details. Copies
   * the error if its details change, because the program may throw the same error again.
   */
  removeFromDetails(error: ConnectError): ConnectError {
    const details = error.details.flatMap((detail): ConnectError["details"] => {
      const { type, value } = "desc" in detail ? encodeDetail(detail) : detail;
      const visible = this.#cleanEncoded(type, value, { encodedDepth: 1, isRequest: false });
      if (visible === undefined) return [];
      return [visible === value ? detail : { type, value: visible }];
    });
    const isSame = details.length === error.details.length && details.every((each, at) => each === error.details[at]);
    return isSame ? error : withDetails(error, details);
  }

  #clean(desc: DescMessage, message: Message, context: CleaningContext): void {
    if (isMessage(message, AnySchema)) this.#cleanAny(message, nestedContext(context));
    this.#cleanMask(desc, message, context);
    for (const field of desc.fields) {
      if (!isFieldSet(message, field)) continue;
      if (!this.#cleanValue(field, fieldValueOf(message, field), context)) clearField(message, field);
    }
    if (message.$unknown !== undefined) this.#cleanExtensions(message, nestedContext(context));
  }

  /** Removes hidden content from a value. Returns `false` if the complete value is hidden. */
  #cleanValue(field: DescField | DescExtension, value: unknown, context: CleaningContext): boolean {
    if (field.enum !== undefined) return this.#cleanEnums(field.enum, value);
    const { message } = field;
    // Wrappers and Structs in fields are plain values, which have no hidden part.
    if (message !== undefined)
      for (const each of valuesIn(value)) if (isMessage(each)) this.#clean(message, each, context);
    return true;
  }

  /** Removes update mask paths that name no visible field. For a request, throws an error instead. */
  #cleanMask(desc: DescMessage, message: Message, { isRequest }: CleaningContext): void {
    let mask = this.#masks.get(desc);
    if (mask === undefined) {
      const found = updateMaskOf(desc);
      this.#masks.set(desc, (mask = found !== undefined && this.mayBeIn([found.target]) ? found : "none"));
    }
    if (mask === "none") return;
    const { field, target } = mask;
    const value = fieldValueOf(message, field);
    if (!isMessage(value, FieldMaskSchema)) return;
    // Replacing a message would clear its hidden fields. Reading a message (AIP-157) does not reveal them.
    const isUpdate = isRequest && field.name !== "read_mask";
    const hidesFields = ({ typeName }: DescMessage): boolean => isUpdate && this.#hidingFields.has(typeName);
    const isAllowed = (path: string): boolean => hasFieldPath(target, path, hidesFields);
    const hidden = value.paths.find((path) => !isAllowed(path));
    if (hidden === undefined) return;
    if (isRequest)
      throw problem("ERR_MESSAGE_INVALID", `${field.name}: unknown path ${JSON.stringify(toShortLine(hidden))}`);
    value.paths = value.paths.filter(isAllowed);
  }

  #cleanEnums(desc: DescEnum, value: unknown): boolean {
    if (!this.#restricted.has(desc.typeName)) return true;
    // A number that no value has is kept, so that validation refuses it.
    const isHidden = (each: unknown): boolean =>
      typeof each === "number" && desc.value[each] === undefined && this.#hiddenNumbers.has(`${desc.typeName}=${each}`);
    if (Array.isArray(value)) removeItems(value, isHidden);
    else if (typeof value === "object" && value !== null)
      for (const [key, each] of Object.entries(value)) if (isHidden(each)) Reflect.deleteProperty(value, key);
    return !isHidden(value);
  }

  /** Keeps a message's visible extensions, and drops its other unknown fields. */
  #cleanExtensions(message: Message, context: CleaningContext): void {
    const sent = new Set(message.$unknown?.map(({ no }) => no));
    const visible = this.#extensions.get(message.$typeName)?.filter(({ number }) => sent.has(number)) ?? [];
    const numbers = new Set(visible.map(({ number }) => number));
    message.$unknown = message.$unknown?.filter(({ no }) => numbers.has(no));
    for (const extension of visible.filter((each) => each.enum !== undefined || each.message !== undefined)) {
      const value: unknown =
        extension.fieldKind === "enum" ? enumNumberOf(message, extension) : getExtension(message, extension);
      const isKept =
        value !== undefined && context.encodedDepth <= maxEncodedDepth && this.#cleanValue(extension, value, context);
      if (isKept) Reflect.apply(setExtension, undefined, [message, extension, value]);
      else clearExtension(message, extension);
    }
  }

  #cleanAny(any: Any, context: CleaningContext): void {
    const typeName = any.typeUrl.slice(any.typeUrl.lastIndexOf("/") + 1);
    const value = this.#cleanEncoded(typeName, any.value, context);
    Object.assign(any, value === undefined ? { typeUrl: "", value: new Uint8Array() } : { value });
  }

  /** Returns an encoded message without hidden parts, or `undefined` if the type is hidden or its name is invalid. */
  #cleanEncoded(typeName: string, bytes: Uint8Array, context: CleaningContext): Uint8Array | undefined {
    // A reader might map an invalid name to a hidden type, for example by removing a trailing slash.
    if (!fullName.test(typeName)) return undefined;
    const owner = this.#ownerOf(typeName);
    // A type that no definition declares is not hidden.
    if (owner === undefined) return bytes;
    const desc = owner.types.getMessage(typeName);
    if (desc === undefined) return undefined;
    if (!this.mayBeIn([desc])) return bytes;
    return context.encodedDepth <= maxEncodedDepth ? this.#cleanBytes(desc, bytes, context) : new Uint8Array();
  }

  /** Returns the definition, if any, that declares a message type, even if the message type is hidden. */
  #ownerOf(typeName: string): PartlyVisible | undefined {
    return this.#definitions.find(
      ({ types, restricted }) => types.getMessage(typeName) !== undefined || restricted.has(typeName),
    );
  }

  /** Returns an encoded message without hidden parts, or no bytes if invalid. @throws ConnectError for its mask */
  #cleanBytes(desc: DescMessage, bytes: Uint8Array, context: CleaningContext): Uint8Array {
    try {
      const limit = this.#recursionLimit;
      const message = fromBinary(desc, bytes, limit === undefined ? {} : { recursionLimit: limit });
      this.#clean(desc, message, context);
      return toBinary(desc, message);
    } catch (error) {
      if (error instanceof ConnectError) throw error;
      return new Uint8Array();
    }
  }
}

/** The number of encoded messages that enclose a message, and whether the message is in a request. */
interface CleaningContext {
  readonly encodedDepth: number;
  readonly isRequest: boolean;
}

function nestedContext({ encodedDepth, isRequest }: CleaningContext): CleaningContext {
  return { encodedDepth: encodedDepth + 1, isRequest };
}

/** Encodes a handler's error detail. Returns no bytes if the detail cannot be encoded. */
function encodeDetail({ desc, value }: OutgoingDetail): IncomingDetail {
  const type = desc.typeName;
  try {
    return { type, value: toBinary(desc, create(desc, value)) };
  } catch {
    return { type, value: new Uint8Array() };
  }
}

function fieldValueOf(message: Message, { localName, oneof }: DescField): unknown {
  if (oneof === undefined) return Reflect.get(message, localName);
  const member: unknown = Reflect.get(message, oneof.localName);
  return typeof member === "object" && member !== null ? Reflect.get(member, "value") : undefined;
}

/** Returns an extension's enum number. For a closed enum's hidden number, `getExtension` returns the default value. */
function enumNumberOf({ $unknown }: Message, { number }: DescExtension): number | undefined {
  const sent = $unknown?.findLast(({ no, wireType }) => no === number && wireType === WireType.Varint);
  return sent && new BinaryReader(sent.data).int32();
}

/** Removes the items for which `isRemoved` returns true. Spreading a long list into `splice` would fail. */
function removeItems(list: unknown[], isRemoved: (item: unknown) => boolean): void {
  let length = 0;
  for (const item of list) if (!isRemoved(item)) list[length++] = item;
  list.length = length;
}

/** Returns a field's list items, map values or single value, as a list. */
function valuesIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return typeof value === "object" && value !== null && !isMessage(value) ? Object.values(value) : [value];
}

/** A message's update mask field, and the message type whose fields the mask's paths name. */
interface UpdateMask {
  readonly field: DescField;
  readonly target: DescMessage;
}

/**
 * Returns a message's update mask (AIP-134) and the resource that the mask refers to. Returns `undefined` unless the
 * message has exactly one google.protobuf.FieldMask and one resource message.
 */
function updateMaskOf({ fields }: DescMessage): UpdateMask | undefined {
  const singular = fields.filter((field) => field.fieldKind === "message");
  const [field, otherMask] = singular.filter(({ message }) => message.typeName === FieldMaskSchema.typeName);
  const [resource, other] = singular.filter(({ message }) => !message.typeName.startsWith("google.protobuf."));
  if (field === undefined || resource === undefined || otherMask !== undefined || other !== undefined) return undefined;
  return { field, target: resource.message };
}

/** Returns whether a path names a field, or with `*` a message, that `isRefused` does not refuse. */
function hasFieldPath(target: DescMessage, path: string, isRefused: (message: DescMessage) => boolean): boolean {
  let message: DescMessage | undefined = target;
  const names = path.match(/`[^`]*`|[^.]+/g) ?? [];
  for (let at = 0; at < names.length; at += 1) {
    const name = names[at];
    if (name === "*") continue;
    const field: DescField | undefined = message?.fields.find((each) => each.name === name || each.jsonName === name);
    if (field === undefined) return false;
    message = field.message;
    if (message?.typeName.startsWith("google.protobuf.") === true) return true;
    // The next name is a map key.
    if (field.fieldKind === "map") at += 1;
  }
  return names.length > 0 && (message === undefined || !isRefused(message));
}

/** Returns a line for each allowed visibility label that no definition uses, or if no definition has a rule. */
export function describeUnusedLabels(
  visibility: VisibilityOptions | undefined,
  used: ReadonlySet<string>,
): readonly string[] {
  const { allow } = visibility ?? {};
  if (allow?.length === 0 && used.size === 0)
    return ["visibility has no effect: the definitions have no google.api.visibility rules"];
  const hint = used.size === 0 ? "the definitions have no labels" : `the definitions use ${[...used].join(", ")}`;
  return (allow ?? [])
    .filter((label) => !labelsOf(label).some((each) => used.has(each)))
    .map((label) => `the visibility label ${JSON.stringify(label)} has no effect: ${hint}`);
}
