// Search trees of many games: selection, expansion and backup. `forest.py` declares what is called from outside.
//
// A tree is two flat arrays, nodes and edges. The edges of a node are its choices, most promising first; they are made
// when the node has been evaluated. Children are made in the order of the edges: of all choices that were not tried, the
// first is the best by any of the rules here, since all of them have the same value until they are tried. So child k of
// a node has the action of its edge k, and an edge needs no pointer.
//
// All values are those of player 0, whose opponent wins what it loses. "For the mover" turns them around where player 1
// moves.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

const int8_t CHANCE = -1, OVER = -2;         // in the place of a mover
const int8_t ASKED = 0, EVALUATED = 1;       // what is the case with a node
const float INF = std::numeric_limits<float>::infinity();
const float LOWEST = -1e9f;

struct Settings {
  int32_t is_gumbel, num_players, num_considered, is_proving;
  float exploration, virtual_loss, discount, low, high, visit_offset, value_scale;
};

struct Edge {
  float log_prior;
  int32_t action;
};

struct Node {
  double total;  // of the values of all simulations that came through
  int32_t parent, first_child, last_child, next_sibling;
  int32_t first_edge, num_edges, num_children, action;
  int32_t visits, pending;  // pending: simulations that are on their way through
  float prior, log_prior, reward, value, outcome;  // outcome: NaN where it is not proven
  int8_t mover, state;
};

struct Tree {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<float> gumbel;       // of the edges of the root
  std::vector<int32_t> schedule;   // visits of the choice that simulation i of the root takes next
  int64_t num_left;                // simulations that are still to begin
  float low, high;                 // of the values of choices, where the game has no bounds
};

struct Forest {
  Settings settings;
  std::vector<Tree> trees;
  std::vector<float> order;        // while edges are sorted
};

float mean(const Node& node) { return float(node.total / node.visits); }

struct Search {
  const Settings& s;
  Tree& tree;

  Node& at(int32_t idx) { return tree.nodes[idx]; }
  float sign(const Node& node) const { return node.mover == 1 ? -1.0f : 1.0f; }
  float choice_value(const Node& child) const { return child.reward + s.discount * mean(child); }
  int32_t others(const Node& node) const { return node.visits + node.pending - 1; }  // without the one that asks
  bool is_bounded() const { return s.num_players == 2; }

  float scaled(float value) const {
    if (is_bounded()) return value / std::max(std::fabs(s.low), std::fabs(s.high));
    return tree.high > tree.low ? (value - tree.low) / (tree.high - tree.low) : 0.0f;
  }

  // Puts a new node behind the other children of its parent.
  int32_t add(int32_t parent, const Edge& edge) {
    const int32_t idx = int32_t(tree.nodes.size());
    Node node{};
    node.parent = parent, node.action = edge.action;
    node.first_child = node.last_child = node.next_sibling = -1;
    node.log_prior = edge.log_prior, node.prior = std::exp(edge.log_prior);
    node.outcome = NAN, node.state = ASKED;
    tree.nodes.push_back(node);
    if (parent >= 0) {
      Node& above = at(parent);
      if (above.last_child < 0) above.first_child = idx;
      else at(above.last_child).next_sibling = idx;
      above.last_child = idx;
      above.num_children++;
    }
    return idx;
  }

  // ---- Rules of selection: each returns a child, or -1 for the next choice that was not tried.

  int32_t by_puct(const Node& node) {
    const float sgn = sign(node), root_of_visits = std::sqrt(float(others(node)));
    const float untried_value = node.visits ? scaled(sgn * mean(node)) : 0.0f;
    float best = -INF;
    int32_t chosen = -1;
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
      const Node& child = at(c);
      const int32_t num = child.visits + child.pending;
      float value = child.visits ? scaled(sgn * choice_value(child)) : untried_value;
      if (child.pending) value = (value * child.visits - s.virtual_loss * child.pending) / num;
      float score = value + s.exploration * child.prior * root_of_visits / (1 + num);
      if (s.is_proving && sgn * child.outcome <= (sgn > 0 ? s.low : -s.high)) score = LOWEST + child.prior;
      if (score > best) best = score, chosen = c;
    }
    if (node.num_children < node.num_edges) {
      const float prior = std::exp(tree.edges[node.first_edge + node.num_children].log_prior);
      if (untried_value + s.exploration * prior * root_of_visits > best) return -1;
    }
    return chosen;
  }

  // Values of the choices of a node, completed for those that were not tried by a mixture of what is known
  // (Danihelka et al. 2022, appendix D), rescaled to [0, 1] and weighted against log-probabilities (equation 8). The
  // scale is that of the game where it has bounds, else from the least to the largest of these values.
  struct Completed {
    float factor, low, mixed;
    float of(float value) const { return factor * (value - low); }
  };

  Completed completed(const Node& node) {
    const float sgn = sign(node);
    float tried = 0, weighted = 0, low = INF, high = -INF;
    int32_t sum = 0, most = 0, num_tried = 0;
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
      const Node& child = at(c);
      if (!child.visits) continue;
      const float value = sgn * choice_value(child), prior = std::max(child.prior, 1e-30f);
      tried += prior, weighted += prior * value, sum += child.visits, num_tried++;
      low = std::min(low, value), high = std::max(high, value), most = std::max(most, child.visits);
    }
    const float own = sgn * node.value;
    const float mixed = sum ? (own + sum * (weighted / tried)) / (sum + 1) : own;
    if (num_tried < node.num_edges) low = std::min(low, mixed), high = std::max(high, mixed);
    if (is_bounded()) low = std::min(sgn * s.low, sgn * s.high), high = std::max(sgn * s.low, sgn * s.high);
    return {(s.visit_offset + most) * s.value_scale / std::max(high - low, 1e-8f), low, mixed};
  }

  float completed_value(const Node& node, const Node& child, const Completed& by) {
    return by.of(child.visits ? sign(node) * choice_value(child) : by.mixed);
  }

  int32_t by_improved_policy(const Node& node) {  // equation 14 there
    const Completed by = completed(node);
    float highest = -INF, left = 1.0f, sum = 0;
    int32_t num = 0;
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
      const Node& child = at(c);
      highest = std::max(highest, child.log_prior + completed_value(node, child, by));
      left -= child.prior, num += child.visits + child.pending;
    }
    const bool has_untried = node.num_children < node.num_edges;
    const float untried = by.of(by.mixed);
    float next = 0;
    if (has_untried) {
      next = tree.edges[node.first_edge + node.num_children].log_prior;
      highest = std::max(highest, next + untried);
      sum += std::max(left, 0.0f) * std::exp(untried - highest);
    }
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling)
      sum += std::exp(at(c).log_prior + completed_value(node, at(c), by) - highest);
    float best = has_untried ? std::exp(next + untried - highest) / sum : -INF;
    int32_t chosen = -1;
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
      const Node& child = at(c);
      const float share = std::exp(child.log_prior + completed_value(node, child, by) - highest) / sum;
      const float score = share - float(child.visits + child.pending) / (1 + num);
      if (score > best) best = score, chosen = c;
    }
    return chosen;
  }

  int32_t by_sequential_halving(const Node& root) {
    const Completed by = completed(root);
    int64_t sum = 0;
    for (int32_t c = root.first_child; c >= 0; c = at(c).next_sibling) sum += at(c).visits + at(c).pending;
    const int32_t wanted = tree.schedule[std::min<int64_t>(sum, tree.schedule.size() - 1)];
    float best = -INF;
    int32_t chosen = root.first_child, k = 0;
    for (int32_t c = root.first_child; c >= 0; c = at(c).next_sibling, k++) {
      const Node& child = at(c);
      if (child.visits + child.pending != wanted) continue;
      const float score = tree.gumbel[k] + child.log_prior + completed_value(root, child, by);
      if (score > best) best = score, chosen = c;
    }
    if (wanted == 0 && k < root.num_edges) {
      const float untried = tree.gumbel[k] + tree.edges[root.first_edge + k].log_prior + by.of(by.mixed);
      if (untried > best) return -1;
    }
    return chosen;
  }

  // The outcome of chance that is furthest behind its probability.
  int32_t by_chance(const Node& node) {
    const int32_t num = node.visits + node.pending;
    float best = -INF;
    int32_t chosen = -1;
    for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
      const float behind = at(c).prior * num - (at(c).visits + at(c).pending);
      if (behind > best) best = behind, chosen = c;
    }
    if (node.num_children < node.num_edges) {
      if (std::exp(tree.edges[node.first_edge + node.num_children].log_prior) * num > best) return -1;
    }
    return chosen;
  }

  int32_t choice(int32_t idx) {
    const Node& node = at(idx);
    if (node.mover == CHANCE) return by_chance(node);
    if (!s.is_gumbel) return by_puct(node);
    return idx == 0 ? by_sequential_halving(node) : by_improved_policy(node);
  }

  // ---- What a simulation does.

  void leave(int32_t idx) {
    for (; idx >= 0; idx = at(idx).parent) at(idx).pending--;
  }

  void back_up(int32_t idx, float value) {
    for (; idx >= 0; idx = at(idx).parent) {
      Node& node = at(idx);
      node.visits++, node.pending--;
      node.total += value;
      // A move is discounted. What chance does with it belongs to the same step of the environment.
      const float discount = node.parent >= 0 && at(node.parent).mover == CHANCE ? 1.0f : s.discount;
      value = node.reward + discount * value;
      if (!is_bounded() && node.parent >= 0) {
        const float found = node.reward + discount * mean(node);
        tree.low = std::min(tree.low, found), tree.high = std::max(tree.high, found);
      }
    }
  }

  // What follows from the outcome of a node that is proven.
  void prove_above(int32_t idx) {
    for (idx = at(idx).parent; idx >= 0; idx = at(idx).parent) {
      Node& node = at(idx);
      if (node.mover == CHANCE || !std::isnan(node.outcome)) return;
      const float sgn = sign(node), wins = sgn > 0 ? s.high : -s.low;
      float best = -INF;
      bool all = node.num_children == node.num_edges;
      for (int32_t c = node.first_child; c >= 0; c = at(c).next_sibling) {
        if (std::isnan(at(c).outcome)) all = false;
        else best = std::max(best, sgn * at(c).outcome);
      }
      if (!all && best < wins) return;
      node.outcome = sgn * best;
    }
  }

  bool is_settled(const Node& node) const {
    return node.mover == OVER || (s.is_proving && !std::isnan(node.outcome));
  }

  // Goes from a node to one that is to be evaluated. Returns -1 where the simulation is over, or nothing is to do.
  int32_t descend(int32_t idx, bool& is_blocked) {
    while (true) {
      at(idx).pending++;
      if (at(idx).state == ASKED) {
        leave(idx);
        is_blocked = true;
        return -1;
      }
      if (is_settled(at(idx)) && idx != 0) {
        back_up(idx, at(idx).mover == OVER ? 0.0f : at(idx).outcome);
        return -1;
      }
      const int32_t chosen = choice(idx);
      if (chosen < 0) {
        const Edge edge = tree.edges[at(idx).first_edge + at(idx).num_children];
        const int32_t made = add(idx, edge);
        at(made).pending++;
        return made;
      }
      idx = chosen;
    }
  }
};

// Visits that the choice of each simulation has had, for sequential halving (Danihelka et al. 2022, figure 1).
std::vector<int32_t> halving(int64_t num_considered, int64_t num_simulations) {
  std::vector<int32_t> found;
  if (num_considered <= 1) {
    for (int64_t i = 0; i < num_simulations; i++) found.push_back(int32_t(i));
    return found;
  }
  const int64_t num_phases = int64_t(std::ceil(std::log2(double(num_considered))));
  std::vector<int32_t> visits(num_considered, 0);
  while (int64_t(found.size()) < num_simulations) {
    const int64_t extra = std::max<int64_t>(1, num_simulations / (num_phases * num_considered));
    for (int64_t i = 0; i < extra; i++) {
      for (int64_t k = 0; k < num_considered; k++) found.push_back(visits[k]++);
    }
    num_considered = std::max<int64_t>(2, num_considered / 2);
  }
  found.resize(num_simulations);
  return found;
}

}  // namespace

extern "C" {

void* forest_new(const Settings* settings, int64_t num_trees) {
  Forest* forest = new Forest{*settings, std::vector<Tree>(num_trees), {}};
  return forest;
}

void forest_delete(Forest* forest) { delete forest; }

int64_t forest_num_bytes(const Forest* forest) {
  int64_t sum = 0;
  for (const Tree& tree : forest->trees)
    sum += tree.nodes.capacity() * sizeof(Node) + tree.edges.capacity() * sizeof(Edge);
  return sum;
}

// A tree with nothing but a root, node 0, which is to be described and evaluated.
void forest_plant(Forest* forest, int64_t game) {
  Tree& tree = forest->trees[game];
  tree.nodes.clear(), tree.edges.clear();
  tree.low = INF, tree.high = -INF, tree.num_left = 0;
  Search search{forest->settings, tree};
  search.add(-1, {0.0f, -1});
  search.at(0).pending++;
}

// Simulations that trees are to have from here on.
void forest_order(Forest* forest, int64_t game, int64_t num) {
  Tree& tree = forest->trees[game];
  tree.num_left = num;
  tree.schedule = halving(std::min<int64_t>(forest->settings.num_considered, tree.nodes[0].num_edges), num);
  if (tree.schedule.empty()) tree.schedule.push_back(0);
}

int64_t forest_num_left(const Forest* forest, int64_t game) { return forest->trees[game].num_left; }

// Begins simulations in these trees, up to `most` each. Those that find something settled are over at once. leaves
// [num_games x most, 4] int32: game, new node, its parent, the action that leads there. Returns how many there are.
int64_t forest_select(Forest* forest, const int32_t* games, int64_t num_games, int64_t most, int32_t* leaves) {
  int64_t num = 0;
  for (int64_t i = 0; i < num_games; i++) {
    Tree& tree = forest->trees[games[i]];
    Search search{forest->settings, tree};
    bool is_blocked = false;
    for (int64_t k = 0; k < most && !is_blocked;) {
      if (search.is_settled(search.at(0))) tree.num_left = 0;
      if (tree.num_left <= 0) break;
      const int32_t leaf = search.descend(0, is_blocked);
      if (is_blocked) break;
      tree.num_left--;
      if (leaf < 0) {
        // A choice that ends the game of one player is never on its way, so while others wait for their evaluation it
        // would seem the best, and take all simulations.
        if (k > 0 && !search.is_bounded()) break;
        continue;
      }
      const Node& node = search.at(leaf);
      int32_t* out = leaves + 4 * num++;
      out[0] = games[i], out[1] = leaf, out[2] = node.parent, out[3] = node.action;
      k++;
    }
  }
  return num;
}

// Describes new nodes. mover [num]; reward [num] of player 0 for the action that led there; outcome [num], of games
// that are over, what player 0 has won in all; num_choices [num], and the choices of all of them one behind the other,
// with the odds of chance. Simulations that end are backed up. Of those that come to chance, the node that is drawn is
// new in turn. leaves [num, 4] is overwritten by those nodes, asked [num] by the positions of nodes that are to be
// evaluated. Returns how many nodes are new in turn; num_asked [1].
int64_t forest_describe(
    Forest* forest, int64_t num, int32_t* leaves, const int8_t* mover, const float* reward, const float* outcome,
    const int32_t* num_choices, const int32_t* choices, const float* odds, int32_t* asked, int64_t* num_asked) {
  int64_t num_new = 0;
  *num_asked = 0;
  for (int64_t i = 0; i < num; i++) {
    const int32_t game = leaves[4 * i], idx = leaves[4 * i + 1];
    Tree& tree = forest->trees[game];
    Search search{forest->settings, tree};
    Node& node = search.at(idx);
    node.mover = mover[i], node.reward = reward[i];
    node.first_edge = int32_t(tree.edges.size()), node.num_edges = num_choices[i];
    if (node.mover == OVER) {
      node.state = EVALUATED, node.num_edges = 0;
      search.back_up(idx, 0.0f);
      if (forest->settings.is_proving) {
        search.at(idx).outcome = outcome[i];
        search.prove_above(idx);
      }
    } else {
      for (int32_t k = 0; k < num_choices[i]; k++)
        tree.edges.push_back({node.mover == CHANCE ? std::log(odds[k]) : 0.0f, choices[k]});
      if (node.mover == CHANCE) {
        node.state = EVALUATED;
        std::stable_sort(tree.edges.end() - num_choices[i], tree.edges.end(),
                         [](const Edge& a, const Edge& b) { return a.log_prior > b.log_prior; });
        const Edge edge = tree.edges[node.first_edge];
        const int32_t made = search.add(idx, edge);
        search.at(made).pending++;
        int32_t* out = leaves + 4 * num_new++;
        out[0] = game, out[1] = made, out[2] = idx, out[3] = edge.action;
      } else {
        asked[(*num_asked)++] = int32_t(i);
      }
    }
    choices += num_choices[i], odds += num_choices[i];
  }
  return num_new;
}

// Takes the evaluation of nodes: logits [num, num_actions] of their actions, value [num] for the mover.
void forest_evaluate(
    Forest* forest, int64_t num, const int32_t* games, const int32_t* nodes, const float* logits, int64_t num_actions,
    const float* value) {
  for (int64_t i = 0; i < num; i++) {
    Tree& tree = forest->trees[games[i]];
    Search search{forest->settings, tree};
    Node& node = search.at(nodes[i]);
    const float* row = logits + i * num_actions;
    Edge* edges = tree.edges.data() + node.first_edge;
    float highest = -INF, sum = 0;
    for (int32_t k = 0; k < node.num_edges; k++) highest = std::max(highest, row[edges[k].action]);
    for (int32_t k = 0; k < node.num_edges; k++) sum += std::exp(row[edges[k].action] - highest);
    for (int32_t k = 0; k < node.num_edges; k++) edges[k].log_prior = row[edges[k].action] - highest - std::log(sum);
    std::stable_sort(edges, edges + node.num_edges,
                     [](const Edge& a, const Edge& b) { return a.log_prior > b.log_prior; });
    if (nodes[i] == 0) tree.gumbel.assign(node.num_edges, 0.0f);
    node.value = search.sign(node) * value[i];
    node.state = EVALUATED;
    search.back_up(nodes[i], node.value);
  }
}

// Changes the priors of an evaluated root that is searched from now on. noise [num_edges], by the order of its edges.
// PUCT: noise is a distribution, of which the priors get a share. Gumbel: it is added to the log-probabilities where
// choices are compared.
void forest_disturb(Forest* forest, int64_t game, const float* noise, float share) {
  Tree& tree = forest->trees[game];
  Search search{forest->settings, tree};
  Node& root = search.at(0);
  Edge* edges = tree.edges.data() + root.first_edge;
  const int32_t num = root.num_edges, tried = root.num_children;
  if (forest->settings.is_gumbel) {
    std::vector<std::pair<float, Edge>> order;
    for (int32_t k = 0; k < num; k++) order.push_back({noise[k], edges[k]});
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first + a.second.log_prior > b.first + b.second.log_prior;
    });
    tree.gumbel.resize(num);
    for (int32_t k = 0; k < num; k++) tree.gumbel[k] = order[k].first, edges[k] = order[k].second;
    return;
  }
  int32_t k = 0;
  for (int32_t c = root.first_child; c >= 0; c = search.at(c).next_sibling, k++)
    search.at(c).prior = (1 - share) * search.at(c).prior + share * noise[k];
  for (k = tried; k < num; k++) edges[k].log_prior = std::log((1 - share) * std::exp(edges[k].log_prior) + share * noise[k]);
  std::stable_sort(edges + tried, edges + num, [](const Edge& a, const Edge& b) { return a.log_prior > b.log_prior; });
}

// What is known of the choices of a root, by the order of its edges: action, visits, value of the choice for the mover
// (NaN where it was not tried), weight in the improved policy (Gumbel: log-probability plus completed value; PUCT:
// visits), score by which the move is chosen, and whether it wins or loses for certain (1, -1, else 0). value [1]: of the
// root, for the mover. Returns the number of choices.
int64_t forest_read(
    Forest* forest, int64_t game, int32_t* action, int32_t* visits, float* value, float* weight, float* score,
    int8_t* certain, float* root_value) {
  Tree& tree = forest->trees[game];
  Search search{forest->settings, tree};
  const Node& root = search.at(0);
  const bool is_gumbel = forest->settings.is_gumbel;
  const Search::Completed by = is_gumbel ? search.completed(root) : Search::Completed{};
  const float sgn = search.sign(root);
  const float wins = sgn > 0 ? forest->settings.high : -forest->settings.low;
  const float loses = sgn > 0 ? forest->settings.low : -forest->settings.high;
  int32_t most = 0, c = root.first_child;
  for (int32_t k = 0; k < root.num_edges; k++) {
    const Edge& edge = tree.edges[root.first_edge + k];
    action[k] = edge.action, visits[k] = 0, value[k] = NAN, certain[k] = 0;
    if (c >= 0) {
      const Node& child = search.at(c);
      visits[k] = child.visits;
      if (child.visits) value[k] = sgn * search.choice_value(child);
      if (forest->settings.is_proving && !std::isnan(child.outcome))
        certain[k] = sgn * child.outcome >= wins ? 1 : sgn * child.outcome <= loses ? -1 : 0;
      c = child.next_sibling;
    }
    most = std::max(most, visits[k]);
  }
  for (int32_t k = 0; k < root.num_edges; k++) {
    const Edge& edge = tree.edges[root.first_edge + k];
    weight[k] = score[k] = float(visits[k]);
    if (is_gumbel) {
      weight[k] = edge.log_prior + by.of(visits[k] ? value[k] : by.mixed);
      score[k] = visits[k] == most ? tree.gumbel[k] + weight[k] : LOWEST;
    }
  }
  *root_value = root.visits ? sgn * (std::isnan(root.outcome) ? mean(root) : root.outcome) : NAN;
  return root.num_edges;
}

// The moves that follow if an action is taken at the root and then always what was tried most: nodes and actions [most],
// each node with the action that is taken there. Returns how many they are.
int64_t forest_line(
    const Forest* forest, int64_t game, int64_t action, int32_t* nodes, int32_t* actions, int64_t most) {
  const std::vector<Node>& all = forest->trees[game].nodes;
  int32_t node = 0;
  int64_t num = 0;
  while (num < most) {
    int32_t next = -1, visits = 0;
    for (int32_t c = all[node].first_child; c >= 0; c = all[c].next_sibling)
      if (num == 0 ? all[c].action == action : all[c].visits > visits) next = c, visits = all[c].visits;
    if (next < 0) break;
    nodes[num] = node, actions[num++] = all[next].action;
    node = next;
  }
  return num;
}

// Steps from the root to these nodes [num], all together.
int64_t forest_depth(Forest* forest, int64_t num, const int32_t* games, const int32_t* nodes) {
  int64_t sum = 0;
  for (int64_t i = 0; i < num; i++) {
    Search search{forest->settings, forest->trees[games[i]]};
    for (int32_t idx = search.at(nodes[i]).parent; idx >= 0; idx = search.at(idx).parent) sum++;
  }
  return sum;
}

int64_t forest_num_visits(const Forest* forest, int64_t game) { return forest->trees[game].nodes[0].visits; }
int64_t forest_mover(const Forest* forest, int64_t game) { return forest->trees[game].nodes[0].mover; }
int64_t forest_num_nodes(const Forest* forest, int64_t game) { return forest->trees[game].nodes.size(); }
int64_t forest_num_edges(const Forest* forest, int64_t game) { return forest->trees[game].nodes[0].num_edges; }

// Makes the child of the root that an action leads to the root, and forgets all that is not below it. kept [num_nodes]:
// the old number of each node that is left. Returns how many are left, 0 where the child was never evaluated.
int64_t forest_descend(Forest* forest, int64_t game, int32_t action, int32_t* kept) {
  Tree& tree = forest->trees[game];
  Search search{forest->settings, tree};
  int32_t c = search.at(0).first_child;
  while (c >= 0 && search.at(c).action != action) c = search.at(c).next_sibling;
  if (c < 0 || search.at(c).state == ASKED || search.at(c).pending) return 0;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::vector<int32_t> from{c};
  nodes.push_back(search.at(c));
  nodes[0].parent = nodes[0].next_sibling = -1;
  nodes[0].reward = 0;
  for (size_t i = 0; i < nodes.size(); i++) {  // breadth first: children follow in the order of their edges
    const int32_t first_edge = int32_t(edges.size());
    const auto begin = tree.edges.begin() + nodes[i].first_edge;
    edges.insert(edges.end(), begin, begin + nodes[i].num_edges);
    nodes[i].first_edge = first_edge;
    int32_t last = -1;
    for (int32_t old = nodes[i].first_child; old >= 0; old = search.at(old).next_sibling) {
      const int32_t idx = int32_t(nodes.size());
      nodes.push_back(search.at(old));
      from.push_back(old);
      nodes[idx].parent = int32_t(i), nodes[idx].next_sibling = -1;
      if (last < 0) nodes[i].first_child = idx;
      else nodes[last].next_sibling = idx;
      last = nodes[i].last_child = idx;
    }
  }
  tree.nodes.assign(nodes.begin(), nodes.end());
  tree.edges.assign(edges.begin(), edges.end());
  std::copy(from.begin(), from.end(), kept);
  return int64_t(nodes.size());
}

}  // extern "C"
