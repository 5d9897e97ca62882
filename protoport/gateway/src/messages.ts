/** The entry `@protoport/gateway/messages`, which exports fast codecs for JSON and binary messages, and the messages of streams. Runs in browsers. */
export {
  asFieldValues,
  type BoundFields,
  createBinaryReader,
  createBinaryWriter,
  createFieldForm,
  createFieldSetter,
  createMessageForms,
  createPlainConverter,
  createUrlTextParser,
  type FieldValues,
  findField,
  hasCustomJsonRepresentation,
  ignoredJsonOptions,
  jsonOptionNames,
  type JsonStyle,
  loadField,
  memoize,
  type PlainConverter,
  readJsonExactly,
  type ReadJsonOptions,
} from "./protobuf/index.ts";
export {
  formatGrpcTimeout,
  JsonValueReader,
  maxMessageBytes,
  type MessageSplitter,
  oneMessage,
  readMessages,
} from "./protocols/index.ts";
export { wrapMessages } from "./serve/index.ts";
