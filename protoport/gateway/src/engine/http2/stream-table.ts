/** The reason why a stream is not open (RFC 9113 §5.1). */
type Absence = "idle" | "closed" | "reset-by-us" | "beyond-go-away";

// Maximum number of remembered streams that we have reset. Frames on a reset stream may arrive for about a round trip.
const rememberedResets = 1024;

/** The open streams on a connection, and the reasons why other streams are not open (RFC 9113 §5.1, §5.1.1). */
export class StreamTable<Stream extends IdentifiedStream> {
  readonly open: OpenStreams<Stream> = new OpenStreams();
  /** Identifier of the highest stream that the client has opened. Lower idle streams count as closed (§5.1.1). */
  lastStreamId = 0;
  /** Identifiers of streams that we have reset, because frames may still arrive. The oldest identifiers are removed. */
  readonly #resetByUs = new Set<number>();
  /** Whether our final GOAWAY was sent. Streams with higher identifiers are ignored. */
  goAwaySent = false;

  rememberReset(streamId: number): void {
    this.#resetByUs.add(streamId);
    if (this.#resetByUs.size <= rememberedResets) return;
    for (const oldest of this.#resetByUs) {
      this.#resetByUs.delete(oldest);
      break;
    }
  }

  /** Returns why a stream is not open. The server opens no streams, so even identifiers are idle. */
  absenceOf(streamId: number): Absence {
    if (streamId % 2 === 0) return "idle";
    if (streamId > this.lastStreamId) return this.goAwaySent ? "beyond-go-away" : "idle";
    return this.#resetByUs.has(streamId) ? "reset-by-us" : "closed";
  }
}

/** A stream on a connection. */
export interface IdentifiedStream {
  /** The stream identifier (RFC 9113 §5.1.1). */
  readonly id: number;
}

/** Minimum number of slots. 32 slots are enough for 16 streams, and take 128 to 256 bytes per connection. */
const minSlots = 32;

/** 2^32 divided by the golden ratio. */
const goldenRatio = 0x9e37_79b1;

/**
 * The open streams on a connection, by identifier, in a hash table with linear probing. At least half of the slots are
 * free, so that most lookups read one or two slots. If a client chooses colliding identifiers, a lookup reads at most
 * one slot more than there are open streams.
 *
 * A Map would also slow down garbage collection. V8 allocates a new table after some additions and deletions, and links
 * each replaced table to its successor. If a full garbage collection has promoted one table, scavenges keep all its
 * successors and their streams alive, and promote them.
 */
export class OpenStreams<Stream extends IdentifiedStream> {
  #slots: (Stream | undefined)[] = newSlots(minSlots);
  /** Number of streams. Only this class sets it. */
  size = 0;

  get(id: number): Stream | undefined {
    return this.#slots[this.#find(id)];
  }

  /** Adds a stream whose identifier is not in the table. */
  add(stream: Stream): void {
    if (2 * (this.size + 1) > this.#slots.length) this.#grow();
    this.#slots[this.#find(stream.id)] = stream;
    this.size++;
  }

  delete(id: number): void {
    let free = this.#find(id);
    if (this.#slots[free] === undefined) return;
    this.size--;
    // Moves a stream into the free slot if a lookup of the stream would stop at the free slot.
    for (let at = this.#next(free); ; at = this.#next(at)) {
      const stream = this.#slots[at];
      if (stream === undefined) break;
      if (this.#distance(this.#slotOf(stream.id), at) < this.#distance(free, at)) continue;
      this.#slots[free] = stream;
      free = at;
    }
    this.#slots[free] = undefined;
  }

  /** Yields the streams in the order of their identifiers. Streams that are deleted meanwhile are left out. */
  *values(): Generator<Stream, void> {
    const streams = this.#slots.filter((stream) => stream !== undefined).toSorted((a, b) => a.id - b.id);
    for (const stream of streams) if (this.get(stream.id) === stream) yield stream;
  }

  /** Returns the stream's slot, or the free slot for it. */
  #find(id: number): number {
    let at = this.#slotOf(id);
    for (let stream = this.#slots[at]; stream !== undefined && stream.id !== id; stream = this.#slots[at])
      at = this.#next(at);
    return at;
  }

  /**
   * Returns the first slot for an identifier (Fibonacci hashing). If the hash were the lowest bits, new streams would
   * collide with older streams that have consecutive identifiers, and a lookup would read all their slots.
   */
  #slotOf(id: number): number {
    // The shift keeps as many of the product's highest bits as a slot index has.
    return Math.imul(id, goldenRatio) >>> Math.clz32(this.#slots.length - 1);
  }

  #next(slot: number): number {
    return (slot + 1) & (this.#slots.length - 1);
  }

  /** Returns the number of slots from `from` to `to`, wrapping around at the table's end. */
  #distance(from: number, to: number): number {
    return (to - from) & (this.#slots.length - 1);
  }

  #grow(): void {
    const streams = this.#slots;
    this.#slots = newSlots(2 * streams.length);
    for (const stream of streams) if (stream !== undefined) this.#slots[this.#find(stream.id)] = stream;
  }
}

function newSlots<Stream>(length: number): (Stream | undefined)[] {
  return Array.from<Stream | undefined>({ length });
}
