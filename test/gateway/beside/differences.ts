import type { Carriage } from "../../support/gateway/wire-format.ts";

/** A call of which a client sees something else than with connect-node, and why. */
export interface Difference {
  /** The name of the row. */
  readonly row: string;
  /** The carriages on which it differs; all of the row's by default. */
  readonly only?: (carriage: Carriage) => boolean;
  /** Whether the code is the same, so that only the text or a field differs. */
  readonly sameCode: boolean;
  readonly why: string;
}

const record = "an answer before the RPC has a body that says what is wrong, in the shape of the caller";
const ourWords = "what is wrong is said in the words of the reader that found it, which name the place";
const clientsMistake = "what a client sends can be no fault of the server";

/** All that is different on purpose; everything else must be the same. */
export const differences: readonly Difference[] = [
  { row: "an RPC that is not there", sameCode: false, why: record },
  { row: "a path that is no RPC", sameCode: false, why: record },
  { row: "a GET of an RPC with side effects", sameCode: true, why: "RFC 9110 §15.5.6: a 405 must carry Allow" },
  {
    row: "a deadline that has passed",
    sameCode: true,
    why: "a call that is over before its handler ran does not run, so there are no fields of the handler's",
  },
  { row: "JSON that is none", sameCode: true, why: ourWords },
  { row: "a GET without a version", only: ({ format }) => format.codec === "json", sameCode: true, why: ourWords },
  { row: "a message that is none", sameCode: false, why: clientsMistake },
  { row: "a GET whose message is no base64", sameCode: false, why: clientsMistake },
  { row: "no envelope", sameCode: true, why: ourWords },
  { row: "half an envelope", sameCode: true, why: ourWords },
  { row: "two messages", sameCode: true, why: ourWords },
];
