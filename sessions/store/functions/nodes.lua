-- Nodes: what each has told, and whether it lives. As memory_nodes.py.
local function get_node(node)
  local kept = step.nodes[node]
  if kept == nil then
    local packed = call('HGET', KEY_NODES, node)
    kept = packed and cmsgpack.unpack(packed)
    step.nodes[node] = kept
  end
  return kept
end

local function living(node)
  local kept = get_node(node)
  return kept and not kept.died_us and kept
end

local function note_node(kept)
  call('HSET', KEY_NODES, kept.node, cmsgpack.pack(kept))
  step.nodes[kept.node] = kept
end

local function renew_node(node, lease_us)
  call('ZADD', KEY_ENDS, step.now + lease_us, 'n:' .. node)
end

local function node_tells(told)
  bring(told)
  call('ZREM', KEY_ENDS, 'l:' .. told.node, 'g:' .. told.node)
  renew_node(told.node, told.lease_us)
  told.capacity, told.reserve = nil, nil
  note_node(told)
end

local function node_dies(node, died_us)
  local kept = living(node)
  if not kept then
    return
  end
  kept.died_us = died_us
  note_node(kept)
  bring_no_longer(node)
  call('ZREM', KEY_ENDS, 'n:' .. node)
  call('ZADD', KEY_ENDS, died_us + kept.return_us, 'l:' .. node, died_us + kept.grace_us, 'g:' .. node)
end

local function remove_node(node)
  call('HDEL', KEY_NODES, node)
  step.nodes[node] = nil
end
