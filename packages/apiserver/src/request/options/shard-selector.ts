/** The option `shardSelector` of lists and watches (KEP-5866). */
import { parseShardSelector, type ShardSelector } from '@megaplane/machinery/sharding/selector';
import { failed, success, unclassified, type Result } from '@megaplane/machinery/status';

/** Upstream's parser of shards gives no API error, which makes its refusals an unclassified 500. */
export function shardOf(text: string): Result<ShardSelector | null> {
  if (text === '') return success(null);
  const parsed = parseShardSelector(text);
  if (parsed.ok) return success(parsed.selector);
  return failed(unclassified(`invalid shard selector: ${parsed.error}`));
}
