import { expect, test } from "vitest";
import { Deletion, endings } from "../../../src/stores/contract/deletion.ts";
import { commitBatch } from "../../../src/stores/queue/commit-batch.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import { fakeBackend } from "../../support/plants/fake-store.ts";

const ignore = (): void => undefined;

function deletionOf(id: bigint): Deletion {
  return new Deletion(id, deleteCall(), ignore, ignore);
}

test("a failed batch also ends its deferred deletions, unlike a successful batch", async () => {
  for (const failure of [undefined, endings.unavailable("away")]) {
    const [open, deferred, ended] = [deletionOf(1n), deletionOf(2n), deletionOf(3n)];
    const backend = fakeBackend(async () => {
      deferred.defer();
      ended.decide(endings.absent);
      return failure;
    });
    const batch = [open, deferred, ended];
    for (const one of batch) one.send();
    await expect(commitBatch(backend, batch, { deadlineMs: 0, isCareful: false })).resolves.toBe(failure);
    expect(batch.map((one) => one.ending?.kind)).toEqual(
      failure === undefined ? ["outcome-unknown", undefined, "absent"] : ["unavailable", "unavailable", "absent"],
    );
  }
});
