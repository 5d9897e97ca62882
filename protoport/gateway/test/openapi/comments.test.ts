import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type Comments, readComments } from "../../src/openapi/comments.ts";
import { createTempFolder, runProgram } from "@protoport/testing/process";

const definition = `
  syntax = "proto3";
  package garden.v1;

  // Waters things.
  //
  //   indented
  service Waterer {
    // Waters one bed.
    rpc Water(Bed) returns (Bed);
    rpc Rest(Bed) returns (Bed);
  }

  /* A bed. */
  message Bed {
    // How wide.
    int32 width = 1;
    int32 depth = 2; // How deep.
    /*How wet.*/
    int32 moisture = 3;
    // What grows.
    message Crop {
      // Its name.
      string name = 1;
      // How it is.
      enum State {
        // Nobody looked.
        STATE_UNSPECIFIED = 0;
      }
    }
  }

  // Where the sun is.
  enum Side {
    SIDE_UNSPECIFIED = 0;
    // Noon.
    SIDE_SOUTH = 1;
  }
`;

const definitionWithoutPackage = `
  syntax = "proto2";

  // A shed.
  message Shed {
    extensions 1 to 9;
  }

  // More about sheds.
  extend Shed {
    // Its colour.
    optional string colour = 1;
  }
`;

let comments: Comments;

beforeAll(async () => {
  using folder = createTempFolder();
  const output = folder.file("garden.binpb");
  writeFileSync(folder.file("garden.proto"), definition);
  writeFileSync(folder.file("shed.proto"), definitionWithoutPackage);
  await runProgram("node_modules/.bin/buf", ["build", folder.path, "-o", output]);
  comments = readComments(readFileSync(output));
});

test.each([
  ["garden.v1.Waterer", "Waters things.\n\n  indented"],
  ["garden.v1.Waterer.Water", "Waters one bed."],
  ["garden.v1.Waterer.Rest", undefined],
  ["garden.v1.Bed", "A bed."],
  ["garden.v1.Bed.width", "How wide."],
  ["garden.v1.Bed.depth", "How deep."],
  ["garden.v1.Bed.moisture", "How wet."],
  ["garden.v1.Bed.Crop", "What grows."],
  ["garden.v1.Bed.Crop.name", "Its name."],
  ["garden.v1.Bed.Crop.State", "How it is."],
  ["garden.v1.Bed.Crop.State.STATE_UNSPECIFIED", "Nobody looked."],
  ["garden.v1.Side", "Where the sun is."],
  ["garden.v1.Side.SIDE_UNSPECIFIED", undefined],
  ["garden.v1.Side.SIDE_SOUTH", "Noon."],
  ["Shed", "A shed."],
  ["colour", "Its colour."],
])("readComments finds the comment on %s, if it has one", (name, want) => expect(comments.get(name)).toBe(want));

test("the comment of an extend block is not used for its extensions", () =>
  expect([...comments.values()]).not.toContain("More about sheds."));
