import { create } from "@bufbuild/protobuf";
import { type Book, BookSchema, Genre } from "../gen/library/v1/library_pb.ts";

export const maxBooks = 100;
/** Number of books in a list with about 10 MB as JSON. */
export const longListBooks = 17_600;

/** Returns `count` books from a shelf, and repeats the shelf if it has fewer books. */
export function takeBooks<Item>(shelf: readonly Item[], count: number): Item[] {
  if (count <= shelf.length) return shelf.slice(0, count);
  const shelves = Array.from({ length: Math.ceil(count / shelf.length) }, () => shelf);
  return shelves.flat().slice(0, count);
}

/** The n-th book, in any process: 595 bytes as JSON, 375 as protobuf, with fields as in most services. */
export const makeBook = (n: number): Book =>
  create(BookSchema, {
    id: 9_007_199_254_740_993n + BigInt(n),
    title: `The Secret Life of "Leaves", volume ${String(n)}`,
    authors: ["Flora Grünewald", "Basil Moss"],
    genre: Genre.SCIENCE,
    pageCount: 320 + (n % 100),
    price: { currencyCode: "EUR", units: 24n, nanos: 990_000_000 },
    rating: (425 + (n % 7)) / 100,
    inPrint: n % 3 !== 0,
    publishTime: { seconds: 1_554_076_800n + BigInt(n) * 86_400n, nanos: 0 },
    updateTime: { seconds: 1_700_000_000n + BigInt(n), nanos: 123_456_000 },
    labels: { shelf: `B-${String(n)}`, language: "en", binding: "hardcover" },
    summary:
      "How leaves feel, remember and talk to each other, told by two gardeners who have listened to them for half a century and longer: of roots that trade, stems that count and flowers that lie.",
  });

export const makeBooks = (count: number): Book[] => Array.from({ length: count }, (_, n) => makeBook(n));
