import { type DescMessage, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { createBinaryReader, createBinaryWriter } from "../../../gateway/src/protobuf/messages/binary/index.ts";
import { canCompile } from "../../../gateway/src/protobuf/messages/codegen.ts";
import { hasDeclaredWireTypes } from "../../../gateway/src/protobuf/messages/binary/wire-types.ts";
import { createJsonMessageWriter, readPartialJson } from "../../../gateway/src/protobuf/messages/json/index.ts";
import { createMessageForms } from "../../../gateway/src/protobuf/messages/json/message-forms.ts";
import { attempt } from "../attempt.ts";
import { Dice } from "../dice.ts";
import { randomBytes } from "./random-bytes.ts";
import { randomTypes } from "./random-types.ts";
import { isSameValue } from "./same-value.ts";

// Program for runs without code generation, on a Node.js that rejects generated code, or with `--no-codegen` in a
// gateway. The program reads and writes random messages as the gateway does. The program prints how many results equal
// those from protobuf-es, the exact reader and the writer's closures.

const options = process.argv.includes("--no-codegen") ? { codegen: false } : {};
const exact = createMessageForms({});
const types = 20;
const messagesPerType = 20;
let same = 0;
let different = 0;

for (let seed = 0; seed < types; seed += 1) {
  const dice = new Dice(seed);
  for (const desc of randomTypes(dice)) {
    const read = createBinaryReader(desc, options);
    const write = createBinaryWriter(desc, options);
    const writeJson = createJsonMessageWriter(desc, options);
    for (let count = 0; count < messagesPerType; count += 1) {
      const bytes = randomBytes(desc, dice, { inField: 40, inBytes: 8 });
      const got = attempt(() => read(bytes));
      const expected = attempt(() => readByProtobufEs(desc, bytes));
      const gotBytes = expected && attempt(() => Uint8Array.from(write(expected)));
      const expectedBytes = expected && attempt(() => toBinary(desc, expected));
      const text = expected && attempt(() => writeJson(expected));
      const expectedText = expected && attempt(() => JSON.stringify(exact.writerOf(desc).toJson(expected)));
      const [gotJson, expectedJson] = [undefined, { paths: [], repeated: 0 }].map((notes) =>
        attempt(() => readPartialJson(desc, text ?? "", options, undefined, undefined, notes).message),
      );
      if (isSameValue([got, gotBytes, text, gotJson], [expected, expectedBytes, expectedText, expectedJson])) same += 1;
      else different += 1;
    }
  }
}

console.log(JSON.stringify({ canCompile: canCompile(options), same, different }));

function readByProtobufEs(desc: DescMessage, bytes: Uint8Array): Message {
  const message = fromBinary(desc, bytes);
  if (!hasDeclaredWireTypes(desc, bytes)) throw new Error("not as it is declared");
  return message;
}
